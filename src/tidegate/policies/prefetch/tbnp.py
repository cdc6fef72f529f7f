"""Tree-based neighbourhood prefetch."""

from __future__ import annotations

from tidegate import units
from tidegate.options import Option
from tidegate.policies.interface.policy import PrefetchPolicy
from tidegate.policies.registries import prefetch
from tidegate.policies.structures.neighbourhood import Neighbourhood


@prefetch("tbnp")
class TBNp(PrefetchPolicy):
    """Fetch the faulting region whole, and the rest of every node that is more than half resident
    then.

    Over the 64 KB blocks of every 2 MB stands a binary tree. This is the driver's own rule, as
    Ganguly et al. (ISCA'19) found it, for geometries whose regions are the blocks; where a region
    is 2 MB, ``tree`` is the same within it.
    """

    span = Option(units.size("2MiB"), "what a tree stands over", parse=units.size, least=1)

    def start(self) -> None:
        self._tree = Neighbourhood(self.memory, self.span)
        self._pages = self.memory.geometry.pages_per_region

    def on_fault(self, region: int) -> None:
        self.memory.prefetch(region * self._pages, self._pages)
        best = range(region, region + 1)
        coming = {region}
        for node in self._tree.nodes_over(region):
            here = sum(r in coming or self.memory.is_resident(r) for r in node)
            if 2 * here > len(node):
                best, coming = node, set(node)
        for other in best:
            if other != region and not self.memory.is_resident(other):
                self.memory.prefetch(other * self._pages, self._pages)
