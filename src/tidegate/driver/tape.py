"""Tapes: the calls of one policy in a simulated run, what it was shown, and its answers.

The policy runs in Python. Whatever it looks up is noted: before a call there are rows that set
what the call sees, where that differs from what the rows before it have set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.driver.emit import emit_core
from tidegate.errors import PolicyError
from tidegate.policies.interface.declaration import handled_events
from tidegate.policies.interface.events import ADVICE, EVENT_NAMES, OBSERVE, VICTIM
from tidegate.policies.interface.memory_view import VERBS
from tidegate.policies.interface.policy import Policy

FIRST_SHOWN = 16  # rows from here on set what is shown: check.h
RESIDENT, SERVED, OBSERVED, LAST_TOUCH, TOUCH_COUNT, FAULTED, NOW, ACCESSES, RESIDENT_LEN = range(
    FIRST_SHOWN, 25
)
_LOOK_UPS = {
    "is_resident": RESIDENT,
    "is_served": SERVED,
    "last_touch": LAST_TOUCH,
    "touch_count": TOUCH_COUNT,
}
_NUMBERS = {"now": NOW, "accesses": ACCESSES}
_ASKED = (VICTIM, OBSERVE)
ROW = np.dtype([("event", np.uint32), ("region", np.uint32), ("value", np.int64)])


class Tape:
    """Rows to play, with answers where there are any, and the requests in their order.

    ``code`` is the policy in C, emitted when its start() had returned.
    """

    def __init__(self) -> None:
        self.code = ""
        self.requests: list[tuple[int, int, int, int]] = []
        self._rows: list[tuple[int, int, int]] = []
        self._answers: dict[int, int] = {}
        self._set: dict[tuple[int, int], int] = {}  # what the rows so far have set
        self._shown: dict[tuple[int, int], int] = {}  # what the present call was shown
        self._depth = 0

    @property
    def rows(self) -> NDArray[Any]:
        """All rows."""
        return np.array(self._rows, ROW)

    @property
    def answers(self) -> dict[int, int]:
        """The answers by row; None is -1."""
        return self._answers

    @property
    def calls(self) -> int:
        """How many rows are calls."""
        return sum(event < FIRST_SHOWN for event, _, _ in self._rows)

    def show(self, what: int, region: int, value: int) -> None:
        """Note what the policy looked up; what start() sees goes into the code."""
        if self._depth:
            self._shown[what, region] = value

    def request(self, row: tuple[int, int, int, int]) -> None:
        """Note a request of the policy."""
        if self._depth:
            self.requests.append(row)

    def call(self, event: int, method: Callable[..., Any], given: tuple[int, ...]) -> Any:
        """Call the policy; note it unless the policy calls itself."""
        self._depth += 1
        try:
            answer = method(*given)
        finally:
            self._depth -= 1
        if not self._depth:
            self._note(event, given[0] if given else 0, answer)
        return answer

    def _note(self, event: int, region: int, answer: Any) -> None:
        for (what, of), value in self._shown.items():
            if self._set.get((what, of), 0) != value:
                self._rows.append((what, of, value))
                self._set[what, of] = value
        self._shown.clear()
        if event in _ASKED:
            self._answers[len(self._rows)] = -1 if answer is None else int(answer)
        self._rows.append((event, region, 0))


@contextmanager
def taping(policy: Policy) -> Iterator[Tape]:
    """Note the calls of a policy in the run that is made meanwhile, in Python."""
    tape = Tape()
    attach, start = policy.attach, policy.start

    def attach_watched(memory: Any) -> None:
        attach(_Watched(memory, tape))  # type: ignore[arg-type]

    def start_and_emit() -> None:
        start()
        tape.code = emit_core(policy)
        for event in handled_events(policy):
            name = EVENT_NAMES[event]
            vars(policy)[name] = _taped(policy, tape, event, name)

    vars(policy).update(attach=attach_watched, start=start_and_emit)
    try:
        yield tape
    finally:
        for name in ("attach", "start", *EVENT_NAMES.values()):
            vars(policy).pop(name, None)


def _taped(policy: Policy, tape: Tape, event: int, name: str) -> Callable[..., Any]:
    def taped(*given: int) -> Any:
        # found now: a policy that is limited has got another class meanwhile
        return tape.call(event, getattr(type(policy), name).__get__(policy), given)

    return taped


class _Watched:
    """A memory view that notes look-ups and requests, and passes everything on."""

    def __init__(self, memory: Any, tape: Tape):
        self._memory, self._tape = memory, tape

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._memory, name)
        if name in _NUMBERS:
            self._tape.show(_NUMBERS[name], 0, int(found))
        elif name in VERBS:
            return self._verb(name, found)
        elif name in _LOOK_UPS:
            return self._look_up(_LOOK_UPS[name], found)
        elif name == "faulted":
            return self._faulted
        elif name == "observed":
            return _WatchedSet(found, OBSERVED, self._tape)
        elif name == "resident":
            self._tape.show(RESIDENT_LEN, 0, len(found))
            return _WatchedSet(found, RESIDENT, self._tape)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_memory", "_tape"):
            super().__setattr__(name, value)
        else:
            setattr(self._memory, name, value)

    def _look_up(self, what: int, find: Callable[[int], int]) -> Callable[[int], int]:
        def look_up(region: int) -> int:
            value = find(region)
            self._tape.show(what, region, int(value))
            return value

        return look_up

    def _faulted(self, region: int) -> Any:
        pages = self._memory.faulted(region)
        bits = sum(1 << int(page) for page in pages)
        self._tape.show(FAULTED, region, bits - (1 << 64) if bits >> 63 else bits)
        return pages

    def _verb(self, name: str, ask: Callable[..., None]) -> Callable[..., None]:
        def verb(*given: Any) -> None:
            ask(*given)
            self._tape.request(self._row(name, given))

        return verb

    def _row(self, name: str, given: tuple[Any, ...]) -> tuple[int, int, int, int]:
        numbers = [ADVICE[g] if g is None or isinstance(g, str) else int(g) for g in given]
        if name in ("prefetch", "prefetch_async") and len(numbers) == 1:
            numbers.append(1)
        a, b, c = (*numbers, 0, 0, 0)[:3]
        return VERBS[name].request, a, b, c


class _WatchedSet:
    """A set of regions that notes what is looked for in it."""

    def __init__(self, regions: Any, what: int, tape: Tape):
        self._regions, self._what, self._tape = regions, what, tape

    def __contains__(self, region: int) -> bool:
        found = region in self._regions
        self._tape.show(self._what, region, int(found))
        return found

    def __iter__(self) -> Iterator[int]:
        raise PolicyError("a tape does not hold what a loop over all regions sees")

    def __len__(self) -> int:
        return len(self._regions)

    def __eq__(self, other: object) -> bool:
        return bool(self._regions == other)

    def __rand__(self, other: Any) -> Any:
        return other & self._regions
