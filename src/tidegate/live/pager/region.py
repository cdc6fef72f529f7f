"""A region in the pager: sets of its pages, each the bits of an integer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidegate.trace.trace import Object


@dataclass(eq=False, slots=True)
class RegionState:
    """The page sets and counts of one region."""

    pages: int  # how many belong to an object
    near: int = 0
    arriving: int = 0  # near at the end of this turn
    faulted: int = 0
    wanted: int = 0  # to be prefetched
    remote: int = 0  # pages that prefer far memory; sampled pages do
    sampled: int = 0
    left_far: int = 0  # sampled pages that a prefetch left far
    served: int = 0  # the turn in which it was served last
    evicted_in: int = -2  # the epoch in which it was evicted last
    remote_uses: int = -1  # since it got a counter
    queued: bool = False  # for prefetch
    pinned: bool = False  # by the program; policies do not see it
    faults: int = 0
    evictions: int = 0

    @property
    def resident(self) -> int:
        """Pages that are near or arrive in this turn."""
        return self.near | self.arriving

    @property
    def to_prefetch(self) -> int:
        """Wanted pages that are not resident and did not fault."""
        return self.wanted & ~(self.faulted | self.resident)


class Regions(dict[int, RegionState]):
    """The regions of an arena, by number."""

    def __init__(self, pages_per_region: int):
        self._ppr = pages_per_region

    def add(self, o: Object) -> None:
        """Add the regions of an object, unless they are here."""
        first = o.first_page // self._ppr
        for i in range(-(-o.pages // self._ppr)):
            if first + i not in self:
                self[first + i] = RegionState(min(self._ppr, o.pages - i * self._ppr))

    def in_range(self, first: int, count: int) -> Iterator[tuple[int, RegionState, int]]:
        """Split a range of pages by region: number, region and pages."""
        for number in range(first // self._ppr, -(-(first + count) // self._ppr)):
            if (region := self.get(number)) is not None:
                low = max(0, first - number * self._ppr)
                high = min(region.pages, first + count - number * self._ppr)
                yield number, region, span(low, high)

    def served_longest_ago(self, before: int) -> int | None:
        """Return the resident region whose last turn is the oldest, and is before this one."""
        able = [n for n, r in self.items() if r.resident and not r.pinned and r.served < before]
        return min(able, key=lambda number: self[number].served, default=None)


def tree_prefetch(region: RegionState, faulted: int, threshold: int, leaves: int) -> int:
    """Return the pages that the tree rule prefetches (simulation/gpu/tree.py)."""
    occupied = region.resident | faulted
    wanted = 0
    for leaf in bits(faulted):
        best = 1 << leaf
        size = 2
        while size <= leaves:
            low = leaf // size * size
            high = min(low + size, region.pages)
            node = span(low, high)
            if (occupied & node).bit_count() * 100 > threshold * (high - low):
                best = node
            size *= 2
        wanted |= best
    return wanted & ~(occupied | region.remote)


def bits(mask: int) -> Iterator[int]:
    """Return the numbers of the bits that are set, from the lowest.

    >>> list(bits(0b1101))
    [0, 2, 3]
    """
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def runs(mask: int) -> Iterator[tuple[int, int]]:
    """Return runs of set bits as (first, length).

    >>> list(runs(0b1100110))
    [(1, 2), (5, 2)]
    """
    while mask:
        first = (mask & -mask).bit_length() - 1
        length = (~(mask >> first) & (mask >> first) + 1).bit_length() - 1
        yield first, length
        mask &= ~span(first, first + length)


def span(low: int, high: int) -> int:
    """Return bits ``low`` to ``high - 1``."""
    return (1 << high) - (1 << low) if high > low else 0
