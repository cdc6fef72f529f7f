"""Order: the list most eviction policies keep. Regions leave at the head and enter at the tail."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Iterable
from itertools import filterfalse


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
