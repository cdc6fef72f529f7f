"""Tree-based neighbourhood eviction."""

from __future__ import annotations

from tidegate import units
from tidegate.options import Option
from tidegate.policies.eviction.lrm import LRM
from tidegate.policies.registries import eviction
from tidegate.policies.structures.neighbourhood import Neighbourhood


@eviction("tbne")
class TBNe(LRM):
    """Evict the least recently migrated region, and what is left of subtrees that are less than
    half full then.

    The counterpart of tree-based prefetch (Ganguly et al., ISCA'19): over the blocks of every 2 MB
    stands a binary tree; when an eviction leaves a node less than half resident, the rest of it
    goes too, before anybody asks for the room.
    """

    span = Option(units.size("2MiB"), "what a tree stands over", parse=units.size, least=1)

    def start(self) -> None:
        self._tree = Neighbourhood(self.memory, self.span)

    def on_eviction(self, region: int) -> None:
        super().on_eviction(region)
        for node in self._tree.nodes_over(region):
            here = [r for r in node if r in self.order]
            if 2 * len(here) < len(node):
                for other in here:
                    if not self.memory.is_served(other):
                        self.memory.evict(other)
