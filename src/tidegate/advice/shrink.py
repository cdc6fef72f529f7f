"""What to shrink to make it fit: a ready model, recorded again with less."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tidegate.advice.subject import Subject

_HALVED = ("batch", "context", "image")
_RECOMPUTES = "checkpoint"


@dataclass(frozen=True)
class Change:
    """Other options of a ready model."""

    words: str  # "batch 4"
    options: dict[str, Any]

    @property
    def recomputes(self) -> bool:
        """Whether it keeps the program's results and takes time instead of memory."""
        return _RECOMPUTES in self.options


@dataclass(frozen=True)
class Smaller:
    """A change of a model's options, and the program that was recorded with it."""

    change: Change
    program: Subject
    peak: int  # bytes


def changes(subject: Subject) -> list[Change]:
    """Return what can be less of a ready model: batch, context or resolution, and what it keeps.

    Only ready models can be recorded again; for other programs the list is empty.
    """
    return list(_changes(*subject.model)) if subject.model else []


def record_smaller(
    subject: Subject, progress: Callable[[], None] = lambda: None
) -> Iterator[Smaller]:
    """Yield the recordings with each change; ``progress`` is called after each."""
    from tidegate import record

    assert subject.model is not None
    name, options = subject.model
    for change in changes(subject):
        ops = record.model(name, **{**options, **change.options})
        program = Subject(f"{subject.name}, {change.words}", ops, ops.notes)
        progress()
        yield Smaller(change, program, ops.peak)


def _changes(name: str, given: Any) -> Iterator[Change]:
    from tidegate.record.models import find_model

    cls, _ = find_model(name)
    for option, declared in cls.options().items():
        value = given.get(option, declared.default)
        if option in _HALVED and int(value) > 1:
            yield Change(f"{option} {int(value) // 2}", {option: int(value) // 2})
        if option == _RECOMPUTES and not value:
            yield Change("recomputing activations (checkpoint)", {option: True})
