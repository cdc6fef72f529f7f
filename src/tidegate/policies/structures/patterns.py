"""What a region's pages say to others: CPPE's patterns, from an eviction policy to a prefetcher of
the same run, and the neighbours of a page.

eviction ── record(region, touched pages) ──▶ Patterns ── match(region, faulted) ──▶ prefetch
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tidegate.policies.interface.memory_view import MemoryView


def object_bounds(memory: MemoryView) -> tuple[list[int], list[int]]:
    """Return the first region of each region's object, and the one behind its last."""
    first, end = [0] * memory.regions, [0] * memory.regions
    per_region = memory.geometry.pages_per_region
    for o in memory.objects:
        regions = range(o.first_page // per_region, -(-(o.first_page + o.pages) // per_region))
        for region in regions:
            first[region], end[region] = regions.start, regions.stop
    return first, end


def nodes_over(region: int, first: int, end: int, leaves: int) -> Iterator[tuple[int, int]]:
    """Yield the nodes above a region, from parent to root, as their first region and the one behind
    their last.

    The object has the regions ``first`` to ``end`` - 1. A tree has ``leaves`` regions and ends with
    its object; a region of 2 MB or more is a tree by itself.

    >>> list(nodes_over(5, 0, 7, 8))
    [(4, 6), (4, 7), (0, 7)]
    """
    size = 2
    while size <= leaves:
        begin = first + (region - first) // size * size
        yield begin, min(begin + size, end)
        size *= 2


@dataclass
class Pattern:
    """Which pages of a region had been touched when it was evicted."""

    touched: frozenset[int]
    searched: bool = False  # a fault looked for it before


class Patterns(dict[int, Pattern]):
    """The pattern buffer: patterns of evicted regions, by region.

    Its size is not limited; ``longest`` is the most it held.
    """

    longest = 0
    kept = False  # an eviction policy records patterns; else the prefetcher does

    @classmethod
    def of(cls, memory: MemoryView) -> Patterns:
        """Return the buffer that all policies of a run share."""
        found: Any = memory.shared.setdefault("patterns", cls())
        return found  # type: ignore[no-any-return]

    def record(self, region: int, touched: frozenset[int]) -> None:
        """Record which pages of a region were touched before its eviction."""
        self[region] = Pattern(touched)
        self.longest = max(self.longest, len(self))


def sparse_from(given: int, memory: MemoryView) -> int:
    """Return the untouched pages from which a pattern is recorded: as given, or half a chunk's."""
    return given or max(1, memory.geometry.pages_per_region // 2)
