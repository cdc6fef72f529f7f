"""Heap: regions by a number, the lowest first."""

from __future__ import annotations

from heapq import heapify, heappop, heappush


class Heap(dict[int, int]):
    """A number, 0 or more, for each region in it; ``lowest`` is the region with the least.

    Of several with the same number the lowest region comes first. Entries of earlier numbers stay
    in the heap until they come up.

    >>> heap = Heap()
    >>> heap[7], heap[3], heap[5] = 40, 20, 20
    >>> heap.lowest
    3
    >>> heap.remove(3)
    >>> heap[5] = 60
    >>> heap.lowest, len(heap), 3 in heap
    (7, 2, False)
    """

    def __init__(self) -> None:
        super().__init__()
        self._entries: list[tuple[int, int]] = []

    def __setitem__(self, region: int, number: int) -> None:
        super().__setitem__(region, number)
        heappush(self._entries, (number, region))

    def remove(self, region: int) -> None:
        """Take a region out; it must be there."""
        del self[region]

    @property
    def lowest(self) -> int:
        while self.get(self._entries[0][1]) != self._entries[0][0]:
            heappop(self._entries)
        return self._entries[0][1]

    def replace(self, numbers: dict[int, int]) -> None:
        """Hold these numbers instead."""
        self.clear()
        self.update(numbers)
        self._entries = [(number, region) for region, number in numbers.items()]
        heapify(self._entries)
