"""Recorded traces: the faults and notifications of an arena, in order, for simulation.

The pager's log is a list of numbers: 2 × page + write for a fault or a notification, -1 - 2 × id
where an object begins, -2 - 2 × id where it ends. Addresses are used again when an array is gone;
in the trace every object has pages of its own, which are freed when it is gone.
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
from tidegate.trace.trace import Launch, Object, Provenance, Segment, Trace, lay_out

LAST_REFERENCE = np.iinfo(np.int16).max  # objects beyond it share this number


class RecordedTrace(Trace):
    """One block, in launches that end where arrays do. Hits on resident pages are not recorded.

    Nor is the line of the program that made a touch: each object is an access site of its own.
    Files hold host data; other arrays are born near.
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
        names = _names([o for o in given if o["id"] in used])
        born = [name for name, o in names.items() if o["backing"]["scratch"]]
        sizes = {name: o["bytes"] for name, o in names.items()}
        self.objects = lay_out(sizes, self.geometry, unwritten=born)
        self._ends = _ends(log, dict(zip(seen.tolist(), self.objects, strict=True)))
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
        begin = 0
        for end, frees in [*self._ends.items(), (len(self), ())]:
            if end > begin:  # an array that was used ends after its use, so none is left out
                yield Launch("live", iter([self._segment(begin, end)]), frees=tuple(frees))
            begin = end

    def _segment(self, begin: int, end: int) -> Segment:
        part = slice(begin, end)
        return blocks_of(
            end - begin,
            self._pages[part],
            bytes=self.geometry.page,
            write=self._writes[part],
            reference=self._references[part],
        )

    def identity(self) -> dict[str, Any]:
        events = (2 * self._pages + self._writes).tobytes()
        digest = hashlib.sha256(events).hexdigest()
        objects, ends = str(self.objects), str(self._ends)
        return {"live": digest, "objects": objects, "ends": ends, "references": "objects"}


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
        ident, ended = divmod(-1 - int(log[begin]), 2)
        if ident in objects and not ended:
            first = objects[ident]["first_page"]
            own = slice(first, first + pages[ident])
            owner_of[own], first_of[own] = ident, first
        events = log[begin + 1 : until] >> 1
        owners.append(owner_of[events])
        within.append(events - first_of[events])
    return np.concatenate(owners), np.concatenate(within)


def _ends(log: NDArray[np.int32], objects: dict[int, Object]) -> dict[int, list[tuple[int, int]]]:
    """Return the pages that are freed, by the number of events before."""
    ends: dict[int, list[tuple[int, int]]] = {}
    before = np.cumsum(log >= 0)
    for at in np.flatnonzero((log < 0) & (log % 2 == 0)).tolist():
        o = objects.get((-2 - int(log[at])) // 2)
        if o is not None:
            ends.setdefault(int(before[at]), []).append((o.first_page, o.first_page + o.pages))
    return ends


def _names(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return objects by name; those of the same name are numbered."""
    named: dict[str, dict[str, Any]] = {}
    times: dict[str, int] = {}
    for o in objects:
        times[o["name"]] = n = times.get(o["name"], 0) + 1
        named[o["name"] if n == 1 else f"{o['name']}#{n}"] = o
    return named
