"""What an arena saw, as a Trace: faults and notifications, in order, so that a live program can be simulated."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from tidegate.errors import TidegateError
from tidegate.live.arena import Arena
from tidegate.trace.build import blocks_of
from tidegate.trace.trace import Launch, Object, Provenance, Trace


class RecordedTrace(Trace):
    """One launch of one block: what was used and near all along is not in it, because nobody saw it."""

    name = "live"
    provenance = Provenance.RECORDED

    def __init__(self, arena: Arena):
        objects, events = arena.recorded()
        self.geometry = arena.geometry
        given = sorted(objects, key=lambda o: o["first_page"])
        self.objects = tuple(Object(o["name"], o["bytes"], o["first_page"], self.geometry.pages(o["bytes"])) for o in given)
        # arrays that are gone have taken their name with them: their pages belong to nobody now
        known = np.zeros(int(events.max(initial=0)) // 2 + 1, bool)
        for o in self.objects:
            known[o.first_page : o.first_page + o.pages] = True
        self._events = events[known[events >> 1]]
        if not len(self._events):
            raise TidegateError("nothing was recorded; open the arena with record=True and use an array that still exists")

    def launches(self) -> Iterator[Launch]:
        segment = blocks_of(len(self._events), self._events >> 1, bytes=self.geometry.page, write=self._events & 1)
        yield Launch("live", iter([segment]))

    def identity(self) -> dict[str, Any]:
        return {"live": hashlib.sha256(self._events.tobytes()).hexdigest(), "objects": str(self.objects)}
