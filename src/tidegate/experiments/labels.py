"""Labels of what is compared: as people write it, and by what differs where that is not enough."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidegate.options import Configurable, format_spec


@dataclass(frozen=True)
class Labelled:
    """Something that needs a label: its text, where it comes from, and what makes it this one."""

    text: str
    origin: str  # a file or module; nothing for Tidegate's own
    identity: Hashable
    thing: Configurable | None = field(default=None, compare=False)  # if it has options

    @classmethod
    def of(cls, thing: Configurable, given: Any) -> Labelled:
        """Return the name of a policy or workload that was given as text, a class or an object."""
        as_object = isinstance(given, Configurable)
        settings = tuple(sorted((k, repr(v)) for k, v in thing.settings().items()))
        identity = id(given) if as_object else (type(thing), settings)
        return cls(format_spec(thing), _origin(type(thing)), identity, thing)


def distinct_labels(things: Sequence[Sequence[Labelled]]) -> list[str]:
    """Return a label for each thing: its first part, and the other parts that differ.

    >>> lru, fifo, tree = (Labelled(name, "", name) for name in ("lru", "fifo", "tree"))
    >>> distinct_labels([(lru, tree), (fifo, tree)])
    ['lru', 'fifo']
    >>> distinct_labels([(Labelled("LRU", "a/lru.py", 1),), (Labelled("LRU", "b/lru.py", 2),)])
    ['a/lru.py:LRU', 'b/lru.py:LRU']
    """
    columns = list(zip(*things, strict=True))
    varying = [c for n, c in enumerate(columns) if n == 0 or len({x.identity for x in c}) > 1]
    return [" + ".join(parts) for parts in zip(*map(_labels_of, varying), strict=True)]


def _labels_of(column: Sequence[Labelled]) -> list[str]:
    """Return the texts of a column, with the options that differ; texts that stand for several
    things get their origin, or a number if the origin is the same.
    """
    swept = _swept(column)
    of_text: dict[str, list[Labelled]] = {}
    for named in dict.fromkeys(column):
        thing = named.thing
        text = named.text if thing is None else format_spec(thing, swept[type(thing)])
        of_text.setdefault(text, []).append(named)
    labels: dict[Labelled, str] = {}
    for text, alike in of_text.items():
        places = _short(sorted({named.origin for named in alike})) if len(alike) > 1 else {}
        qualified = [f"{places[t.origin]}:{text}" if places.get(t.origin) else text for t in alike]
        for n, (named, label) in enumerate(zip(alike, qualified, strict=True)):
            alone = qualified.count(label) == 1
            labels[named] = label if alone else f"{label} #{qualified[: n + 1].count(label)}"
    return [labels[named] for named in column]


def _swept(column: Sequence[Labelled]) -> dict[type, set[str]]:
    """Return the options that have several values in a column, for each class."""
    values: dict[type, dict[str, set[str]]] = {}
    for named in column:
        if named.thing is not None:
            found = values.setdefault(type(named.thing), {})
            for name, value in named.thing.settings().items():
                found.setdefault(name, set()).add(repr(value))
    return {
        cls: {name for name, different in found.items() if len(different) > 1}
        for cls, found in values.items()
    }


def _short(origins: list[str]) -> dict[str, str]:
    """Return each path cut to as many of its last parts as are needed to tell them apart."""
    parts = {origin: Path(origin).parts for origin in origins}
    count = 1
    while len({p[-count:] for p in parts.values()}) < len(parts):
        count += 1
    return {origin: str(Path(*p[-count:])) if p else "" for origin, p in parts.items()}


def _origin(cls: type[Any]) -> str:
    """Return the file of a user's class, or its module if there is no file."""
    if cls.__module__.startswith("tidegate."):
        return ""
    return str(getattr(sys.modules.get(cls.__module__), "__file__", None) or cls.__module__)
