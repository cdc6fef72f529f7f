"""Cyclic protection: keep old regions, let new ones pass through."""

from __future__ import annotations

from itertools import islice

from tidegate.options import Option
from tidegate.policies.interface.policy import Decision, EvictionPolicy
from tidegate.policies.interface.steering import End, Steering
from tidegate.policies.interface.visibility import Samples
from tidegate.policies.registries import eviction
from tidegate.policies.structures.column import Marks
from tidegate.policies.structures.order import Order, first

# Regions that are needed at the same time, by two threads that each go over a region's end. With
# fewer unprotected ones they would evict each other for ever.
FEW = 4


@eviction("cp")
class CyclicProtection(EvictionPolicy):
    """Keep the regions that came first for the next cycle; evict the oldest of the others.

        head  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│············  tail
              protected           │unprotected: new regions at the tail, victims at the split
                                  └ observed here; if used, the unprotected area is too small

    The list is divided in two from the start (Figure 7c), in halves by default. Just-migrated
    regions are used for a while, so the unprotected area must be large enough for that. The regions
    next to the split are observed: if one is used, the area grows by one; if one
    is evicted unused, it shrinks by one (ObservUVM, VI-A and Figure 7c; the text has victims leave
    "from the tail of the unprotected area (S)", where S is the split).

    Open readings, each an option: where the split starts, a floor, how much of the area is
    observed.
    """

    sees = Samples(regions=100)
    in_driver = False
    start_share = Option(0.5, "share of the frames that is unprotected at first", least=0, most=1)
    floor = Option(0.01, "least share of the frames that is unprotected", least=0, most=1)
    observe_share = Option(
        0.5, "share of the unprotected area, from the split, that may be observed", least=0, most=1
    )
    step = Option(1, "regions by which the area grows or shrinks", least=1)

    def start(self) -> None:
        self._protected, self._open = Order(), Order()
        # regions observed at this policy's request: only they move the split
        self._mine = Marks()
        self._least, self._size = self.bounds()
        self._moves = 0

    def bounds(self) -> tuple[int, int]:
        """Return the least size of the unprotected area, and its size at first."""
        few = max(1, min(FEW, self.memory.frames // 2))
        least = max(few, round(self.floor * self.memory.frames))
        return least, max(least, round(self.start_share * self.memory.frames))

    def on_fault(self, region: int) -> None:
        if region not in self._protected and region not in self._open:
            self._open.move_to_tail(region)
            self._settle()

    def on_notification(self, region: int) -> None:
        if region in self._mine:
            self._mine.discard(region)
            self._size = min(self.memory.frames, self._size + self.step)
            self._moves += 1
            self._settle()

    def on_eviction(self, region: int) -> None:
        (self._open if region in self._open else self._protected).remove(region)
        if region in self._mine:
            self._mine.discard(region)
            self._size = max(self._least, self._size - self.step)
            self._moves += 1
        self._settle()

    def on_free(self, region: int) -> None:
        (self._open if region in self._open else self._protected).remove(region)
        self._mine.discard(region)  # whether it would have been used is not known
        self._settle()

    def victim(self) -> int:
        last = self._protected.tail if self._protected else self._open.head
        return next((r for r in self._open if not self.memory.is_served(r)), last)

    def observe(self) -> int | None:
        near_split = islice(self._open, max(1, int(self.observe_share * len(self._open))))
        region = first(near_split, unless=self.observed)
        if region is not None:
            self._mine.add(region)
        return region

    def steering(self) -> Steering:
        """Return the split as it is at first: without notifications it does not move."""
        return Steering(self.memory.frames - self._size, End.UNUSED_TAIL)

    def decisions(self) -> list[Decision]:
        size = f"{self._size:,} of {self.memory.frames:,} frames"
        return [Decision(f"unprotected {size}", f"{self._moves:,} moves of the split")]

    def finished(self) -> None:
        assert set(self._protected) | set(self._open) == self.resident
        assert not set(self._protected) & set(self._open)

    def _settle(self) -> None:
        """Move regions over the split until the unprotected area has its size."""
        while len(self._open) > self._size:
            region = self._open.head
            self._open.remove(region)
            self._protected.move_to_tail(region)
        while len(self._open) < self._size and self._protected:
            region = self._protected.tail
            self._protected.remove(region)
            self._open.move_to_head(region)
