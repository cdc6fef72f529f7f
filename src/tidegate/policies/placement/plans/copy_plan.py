"""Plans by tensor, launch by launch: the common part.

    start     ──▶ read the forecast; the plan decides which pieces leave after which launch
    on_launch ──▶ pieces that the plan lets go leave by the outward stream
              ──▶ pieces that are missing come by the inward stream, in the order of need, as far
                  ahead as there is room
    no room   ──▶ for the launch that begins: the pieces used furthest ahead leave

Copies are asked for in the order of need, so no launch waits behind a copy for a later one.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numpy as np

from tidegate.options import Option
from tidegate.policies.interface.forecast import Forecast
from tidegate.policies.interface.policy import PlacementPolicy

Leaves = dict[int, list[int]]  # by launch: the pieces that leave when it has ended


class CopyPlan(PlacementPolicy):
    """Base of plans by tensor. A plan says by ``leaving`` which pieces leave when."""

    needs_plan = True
    by = Option(
        "copies",
        "copies between buffers of the program's own, or managed memory",
        choices=("copies", "managed"),
    )

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.managed = self.by == "managed"

    def start(self) -> None:
        f = self.forecast = self.memory.forecast
        self.pages = self.memory.geometry.pages_per_region
        # Python's lists are quicker than arrays, one by one
        self.first, self.size = f.first.tolist(), f.regions.tolist()
        self.piece, self.launch = f.piece.tolist(), f.launch.tolist()
        # data that are not used any more leave first; before data that die soon by themselves
        self.next = np.where((f.next == f.never) & ~f.dies, f.never + 1, f.next).tolist()
        self.begin = f.begin.tolist()
        self.of_region = np.repeat(np.arange(len(f.first)), f.regions).tolist()
        self.shared = _shared(f)
        self.held = bytearray(self.memory.regions)  # regions that are near or asked for
        self.near = [0] * len(self.first)  # of each piece, how many regions are held
        self.used = 0  # regions held in all
        self.due = [f.never] * len(self.first)  # of each piece, the launch that uses it next
        self.furthest: list[tuple[int, int]] = []  # a heap of (-due, piece); some are out of date
        self.at = 0  # the use that is to be asked for next
        self.asked = bytearray(self.memory.regions)  # regions the inward stream has yet to begin
        self.waiting = 0  # how many those are
        self.copied = {"out": 0, "in": 0}  # regions that were asked for
        self.advise_read_only(f)
        self.leaves = self.leaving(f)

    def advise_read_only(self, f: Forecast) -> None:
        """Let managed memory drop what is never written; programs that copy do so anyway."""
        if self.managed:
            for piece in np.flatnonzero(~f.ever_written).tolist():
                pages = self.size[piece] * self.pages
                self.memory.advise(self.first[piece] * self.pages, pages, "read-mostly")

    def leaving(self, f: Forecast) -> Leaves:
        """Return which pieces leave after which launch; by default none until room is needed."""
        return {}

    # What happens at each launch

    def on_launch(self, launch: int) -> None:
        if launch:
            self._note_uses(launch - 1)
            for piece in self.leaves.get(launch - 1, ()):
                self._let_go(piece)
        self._ask_again(launch)
        self._ask_ahead(launch)

    def _note_uses(self, launch: int) -> None:
        for use in range(self.begin[launch], self.begin[launch + 1]):
            piece = self.piece[use]
            self.due[piece] = self.next[use]
            heappush(self.furthest, (-self.next[use], piece))

    def _let_go(self, piece: int) -> None:
        """Let a piece leave, unless all that is needed before its next use has found room."""
        asked = self.launch[self.at] if self.at < len(self.launch) else self.forecast.never
        if self.due[piece] >= asked:
            self._evict(piece)

    def _ask_again(self, launch: int) -> None:
        """Ask for what this launch uses and has left unplanned, and for pages that are reborn."""
        for use in range(self.begin[launch], min(self.at, self.begin[launch + 1])):
            piece = self.piece[use]
            if self.near[piece] < self.size[piece]:
                if self.make_room(launch, launch, piece):
                    self._ask(piece)
            elif self.shared[piece]:
                # their regions have frames: pages are born at once, before any copy
                first, size = self.first[piece], self.size[piece]
                self.memory.prefetch(first * self.pages, size * self.pages)

    def _ask_ahead(self, launch: int) -> None:
        """Ask for missing pieces in the order of need, while there is room."""
        self.at = max(self.at, self.begin[launch])
        while self.at < len(self.piece):
            piece, needed = self.piece[self.at], self.launch[self.at]
            if self.near[piece] < self.size[piece]:
                if not self.make_room(launch, needed, piece):
                    return
                self._ask(piece)
            self.at += 1

    def make_room(self, launch: int, needed: int, piece: int) -> bool:
        """Return whether there is room for a piece; evict for the launch that begins now.

        What no launch uses any more also leaves for later launches.
        """
        if needed > launch:
            return self.evict_unused(piece)
        return self.evict_furthest(needed, piece)

    def evict_unused(self, piece: int) -> bool:
        """Evict pieces that are not used any more and do not die, if room is needed."""
        return self.evict_furthest(self.forecast.never, piece)

    def lacking(self, piece: int) -> int:
        """Return how many regions are too few for the rest of a piece."""
        return self.used + self.size[piece] - self.near[piece] - self.memory.frames

    def evict_furthest(self, needed: int, piece: int) -> bool:
        """Evict the pieces used furthest ahead, after ``needed``, until there is room."""
        while self.lacking(piece) > 0:
            while self.furthest and self._is_out_of_date(*self.furthest[0]):
                heappop(self.furthest)
            if not self.furthest or -self.furthest[0][0] <= needed:
                return False
            self._evict(heappop(self.furthest)[1])
        return True

    def _is_out_of_date(self, due: int, piece: int) -> bool:
        return self.near[piece] == 0 or self.due[piece] != -due

    # Regions

    def _ask(self, piece: int) -> None:
        first, size = self.first[piece], self.size[piece]
        self.memory.prefetch_async(first * self.pages, size * self.pages)
        for region in range(first, first + size):
            if not self.held[region]:
                self._gain(region)
                self.waiting += not self.asked[region]
                self.asked[region] = 1
                self.copied["in"] += 1

    def _evict(self, piece: int) -> None:
        for region in range(self.first[piece], self.first[piece] + self.size[piece]):
            if self.held[region] and self.memory.is_resident(region):
                self.memory.evict_async(region)
                self.copied["out"] += 1
                self._lose(region)

    def _gain(self, region: int) -> None:
        self.held[region] = 1
        self.near[self.of_region[region]] += 1
        self.used += 1

    def _lose(self, region: int) -> None:
        self.held[region] = 0
        self.near[self.of_region[region]] -= 1
        self.used -= 1

    def on_fault(self, region: int) -> None:
        if not self.held[region]:
            self._gain(region)

    def on_prefetch(self, region: int) -> None:
        self.waiting -= self.asked[region]
        self.asked[region] = 0

    def on_eviction(self, region: int) -> None:
        if self.held[region]:
            self._lose(region)

    def finished(self) -> None:
        assert self.used == sum(self.near) == sum(self.held) >= 0
        assert all(0 <= near <= size for near, size in zip(self.near, self.size, strict=True))

    def report(self) -> dict[str, Any]:
        """Return how much was asked of the streams, in regions, and planned evictions."""
        return {
            "asked in": self.copied["in"],
            "asked out": self.copied["out"],
            "planned evictions": sum(map(len, self.leaves.values())),
        }


def _shared(f: Forecast) -> list[bool]:
    """Return which pieces hold several tensors, whose pages may die one by one."""
    return ((f.regions == 1) & ~f.host).tolist()


def copy_time(f: Forecast, piece: int) -> float:
    """Return how long a piece takes out and back, in ns."""
    return float(f.bytes[piece] * (1 / f.outward + 1 / f.inward))
