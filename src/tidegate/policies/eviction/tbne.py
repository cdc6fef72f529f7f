"""Tree-based neighbourhood eviction."""

from __future__ import annotations

from tidegate import units
from tidegate.options import Option
from tidegate.policies.eviction.lrm import LRM
from tidegate.policies.registries import eviction
from tidegate.policies.structures.patterns import nodes_over, object_bounds


@eviction("tbne")
class TBNe(LRM):
    """Evict the least recently migrated region, and the rest of subtrees that are then less than
    half full.

    The counterpart of tree-based prefetch (Ganguly et al., ISCA'19): there is a binary tree over
    the blocks of every 2 MB; when an eviction leaves a node less than half resident, the rest of it
    is evicted too, before its room is needed.
    """

    span = Option(units.size("2MiB"), "bytes under a tree", parse=units.size, least=1)

    def start(self) -> None:
        self._leaves = max(1, self.span // self.memory.geometry.region)
        self._first, self._end = object_bounds(self.memory)

    def on_eviction(self, region: int) -> None:
        super().on_eviction(region)
        for first, end in nodes_over(region, self._first[region], self._end[region], self._leaves):
            resident = sum(other in self.order for other in range(first, end))
            if 2 * resident < end - first:
                self._evict(first, end)

    def _evict(self, first: int, end: int) -> None:
        for region in range(first, end):
            if region in self.order and not self.memory.is_served(region):
                self.memory.evict(region)
