"""The binary trees of Ganguly et al. (ISCA'19) over the regions of every 2 MB of an object."""

from __future__ import annotations

from collections.abc import Iterator

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
