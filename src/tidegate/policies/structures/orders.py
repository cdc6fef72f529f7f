"""Orders: several orders of which a region is in one at most."""

from __future__ import annotations

from tidegate.policies.structures.order import Order


class Orders(list[Order]):
    """A fixed number of orders; a region must leave one before it enters another.

    >>> bins = Orders(3)
    >>> bins[1].move_to_tail(7)
    >>> len(bins), [list(order) for order in bins]
    (3, [[], [7], []])
    """

    def __init__(self, count: int):
        super().__init__(Order() for _ in range(count))
