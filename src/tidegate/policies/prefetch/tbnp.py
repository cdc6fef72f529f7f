"""Tree-based neighbourhood prefetch."""

from __future__ import annotations

from tidegate import units
from tidegate.options import Option
from tidegate.policies.interface.policy import PrefetchPolicy
from tidegate.policies.registries import prefetch
from tidegate.policies.structures.patterns import nodes_over, object_bounds


@prefetch("tbnp")
class TBNp(PrefetchPolicy):
    """Fetch the whole faulting region, and the rest of every node that is then more than half
    resident.

    There is a binary tree over the 64 KB blocks of every 2 MB. This is the driver's own rule, as
    Ganguly et al. (ISCA'19) found it, for geometries whose regions are the blocks; where a region
    is 2 MB, ``tree`` does the same within it.
    """

    span = Option(units.size("2MiB"), "bytes under a tree", parse=units.size, least=1)

    def start(self) -> None:
        self._leaves = max(1, self.span // self.memory.geometry.region)
        self._first, self._end = object_bounds(self.memory)
        self._pages = self.memory.geometry.pages_per_region

    def on_fault(self, region: int) -> None:
        self.memory.prefetch(region * self._pages, self._pages)
        best_first, best_end = region, region + 1  # the node that comes
        for first, end in nodes_over(region, self._first[region], self._end[region], self._leaves):
            here = 0
            for other in range(first, end):
                here += best_first <= other < best_end or self.memory.is_resident(other)
            if 2 * here > end - first:
                best_first, best_end = first, end
        for other in range(best_first, best_end):
            if other != region and not self.memory.is_resident(other):
                self.memory.prefetch(other * self._pages, self._pages)
