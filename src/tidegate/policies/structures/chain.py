"""Chain: HPE's chunk chain: regions by recency of migration, with the interval of each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import dropwhile

from tidegate.policies.interface.memory_view import MemoryView
from tidegate.policies.structures.order import Order


class Chain(Order):
    """An order of regions, cut into intervals of ``length`` pages migrated, or of as many faults.

    The old partition holds regions of neither this interval nor the last one (CPPE, II-C).
    """

    def __init__(self, length: int, count_faults: bool, memory: MemoryView):
        super().__init__()
        self._length, self._count_faults, self._memory = length, count_faults, memory
        self._done = 0  # pages or faults of the current interval
        self.interval = 0
        self._referenced: dict[int, int] = {}  # the interval in which each region was migrated last

    def migrated(self, region: int, at_head: bool = False) -> bool:
        """Note that pages of this region migrate; return whether an interval is over."""
        new = region not in self
        if at_head and new:
            self.move_to_head(region)
        else:
            self.move_to_tail(region)
        self._referenced[region] = self.interval
        if self._count_faults:
            self._done += len(self._memory.faulted(region))
        elif new:
            self._done += self._memory.geometry.pages_per_region
        if self._done < self._length:
            return False
        self._done -= self._length
        self.interval += 1
        return True

    def evicted(self, region: int) -> None:
        self.remove(region)
        del self._referenced[region]

    @property
    def oldest(self) -> int:
        """The LRU position; regions served in this turn are passed over if others are there."""
        return next((r for r in self if not self._memory.is_served(r)), self.head)

    def from_mru(self, skip_recent: bool = True) -> Iterator[int]:
        """Return the regions from the MRU position of the old partition, or of the whole chain."""
        if not skip_recent:
            return reversed(self)
        return dropwhile(lambda r: self._referenced[r] >= self.interval - 1, reversed(self))
