"""Neighbourhood: the binary trees of Ganguly et al.

(ISCA'19) over the regions of every 2 MB of an object.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.policies.interface.memory_view import MemoryView


class Neighbourhood:
    """Which regions share a tree's nodes. A region of 2 MB or more is a tree by itself."""

    def __init__(self, memory: MemoryView, span: int):
        self._leaves = max(1, span // memory.geometry.region)
        per_region = memory.geometry.pages_per_region
        self._object_of: list[range] = [range(0)] * memory.regions
        for o in memory.objects:
            regions = range(o.first_page // per_region, -(-(o.first_page + o.pages) // per_region))
            for region in regions:
                self._object_of[region] = regions

    def nodes_over(self, region: int) -> Iterator[range]:
        """The nodes above a region, from parent to root, each as the regions under it.

        Trees end with their object.
        """
        whole = self._object_of[region]
        size = 2
        while size <= self._leaves:
            first = whole.start + (region - whole.start) // size * size
            yield range(first, min(first + size, whole.stop))
            size *= 2
