"""SC'19's baselines, which decide nothing: unified memory, host memory, and prefetching all."""

from __future__ import annotations

from tidegate.policies.interface.policy import PlacementPolicy
from tidegate.policies.placement.objects import Planned
from tidegate.policies.registries import placement


@placement("um")
class UnifiedMemory(PlacementPolicy):
    """Give no advice: pages migrate when they fault (SC'19's UM)."""


@placement("host")
class Host(PlacementPolicy):
    """Prefer far memory for every object, so that each touch crosses the link and nothing migrates
    (SC'19's Host).
    """

    def on_launch(self, launch: int) -> None:
        if launch == 0:
            for o in self.memory.objects:
                self.memory.advise(o.first_page, o.pages, "far")


@placement("prefetch-all")
class PrefetchAll(Planned):
    """Prefetch every object a launch uses, whether or not there is room for all of them (SC'19,
    2.3: UM_PF).
    """

    def on_launch(self, launch: int) -> None:
        for use in self.uses():
            owner = self.objects[use.object]
            self.memory.prefetch(owner.first_page, owner.pages)
