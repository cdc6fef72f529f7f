"""Recorded traces: the faults and notifications of an arena, in order, for simulation.

The pager's log is a list of numbers: 2 × page + write for a fault or a notification, -1 - id where
an object begins. Addresses are used again when an array is gone; in the trace every object has
pages of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import TidegateError
from tidegate.live.arena.arena import Arena
from tidegate.trace.build import blocks_of
from tidegate.trace.trace import Launch, Provenance, Trace, lay_out

LAST_REFERENCE = np.iinfo(np.int16).max  # objects beyond it share this number


class RecordedTrace(Trace):
    """One launch of one block. Hits on resident pages are not recorded.

    Nor is the line of the program that made a touch: each object is an access site of its own.
    """

    name = "live"
    provenance = Provenance.RECORDED

    def __init__(self, arena: Arena):
        given, log = arena.recorded()
        self.geometry = arena.geometry
        owner, within = _owners({o["id"]: o for o in given}, log, self.geometry.page)
        seen = np.unique(owner)
        if not len(seen):
            raise TidegateError("nothing was recorded: no large array was used")
        used = set(seen.tolist())
        self.objects = lay_out(_names([o for o in given if o["id"] in used]), self.geometry)
        first = np.array([o.first_page for o in self.objects], np.int64)
        number = np.searchsorted(seen, owner)
        self._pages = first[number] + within
        self._references = np.minimum(number, LAST_REFERENCE)
        self._writes = log[log >= 0] & 1

    @property
    def events(self) -> NDArray[Any]:
        """Pages, one for each event."""
        return self._pages

    def __len__(self) -> int:
        return len(self._pages)

    def launches(self) -> Iterator[Launch]:
        segment = blocks_of(
            len(self),
            self._pages,
            bytes=self.geometry.page,
            write=self._writes,
            reference=self._references,
        )
        yield Launch("live", iter([segment]))

    def identity(self) -> dict[str, Any]:
        events = (2 * self._pages + self._writes).tobytes()
        digest = hashlib.sha256(events).hexdigest()
        return {"live": digest, "objects": str(self.objects), "references": "objects"}


def _owners(
    objects: dict[int, dict[str, Any]], log: NDArray[np.int32], page: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return, for each event, the object and the page within it."""
    pages = {n: -(-o["bytes"] // page) for n, o in objects.items()}
    end = max((o["first_page"] + pages[n] for n, o in objects.items()), default=0)
    owner_of, first_of = np.full(end, -1), np.zeros(end, np.int64)
    owners, within = [], []
    marks = np.flatnonzero(log < 0)
    if not len(marks):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    for begin, until in zip(marks.tolist(), [*marks[1:].tolist(), len(log)], strict=True):
        ident = -1 - int(log[begin])
        if ident in objects:
            first = objects[ident]["first_page"]
            own = slice(first, first + pages[ident])
            owner_of[own], first_of[own] = ident, first
        events = log[begin + 1 : until] >> 1
        owners.append(owner_of[events])
        within.append(events - first_of[events])
    return np.concatenate(owners), np.concatenate(within)


def _names(objects: list[dict[str, Any]]) -> dict[str, int]:
    """Return bytes by name; objects of the same name are numbered."""
    named: dict[str, int] = {}
    times: dict[str, int] = {}
    for o in objects:
        times[o["name"]] = n = times.get(o["name"], 0) + 1
        named[o["name"] if n == 1 else f"{o['name']}#{n}"] = o["bytes"]
    return named
