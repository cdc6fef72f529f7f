"""Orders: lists of regions, of which one leaves at the head and enters at the tail; and the chain
of HPE and MHPE, which is divided by age.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Iterable, Iterator
from itertools import dropwhile, filterfalse

from tidegate.policies.interface.memory_view import MemoryView


class Order(OrderedDict[int, None]):
    """An ordered set of regions with constant-time moves.

    >>> order = Order()
    >>> for region in (3, 1, 2, 3): order.move_to_tail(region)
    >>> list(order), order.head, order.tail
    ([1, 2, 3], 1, 3)
    """

    def __init__(self, regions: Iterable[int] = ()):
        super().__init__(dict.fromkeys(regions))

    def move_to_tail(self, region: int) -> None:
        """Put a region at the tail, whether it was in the order or not."""
        self[region] = None
        self.move_to_end(region)

    def move_to_head(self, region: int) -> None:
        """Put a region at the head, whether it was in the order or not."""
        self[region] = None
        self.move_to_end(region, last=False)

    def remove(self, region: int) -> None:
        """Take a region out; it must be there."""
        del self[region]

    @property
    def head(self) -> int:
        return next(iter(self))

    @property
    def tail(self) -> int:
        return next(reversed(self))


def first(regions: Iterable[int], unless: Container[int]) -> int | None:
    """Return the first region that is not in ``unless``, or None.

    >>> first([4, 5, 6], unless={4})
    5
    """
    return next(filterfalse(unless.__contains__, regions), None)


class Orders(list[Order]):
    """A fixed number of orders; a region must leave one before it enters another.

    >>> bins = Orders(3)
    >>> bins[1].move_to_tail(7)
    >>> len(bins), [list(order) for order in bins]
    (3, [[], [7], []])
    """

    def __init__(self, count: int):
        super().__init__(Order() for _ in range(count))


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
