"""Everything a launch uses is brought near before it begins."""

from __future__ import annotations

from tidegate.policies.placement.objects import needed_plan, uses_of
from tidegate.policies.policy import PlacementPolicy
from tidegate.policies.registries import placement


@placement("prefetch-all")
class PrefetchAll(PlacementPolicy):
    """Prefetch every object a launch uses, whether or not there is room for all of them (SC'19, 2.3: UM_PF)."""

    def start(self) -> None:
        self.plan = needed_plan(self.memory, self.name)
        self.objects = {o.name: o for o in self.memory.objects}

    def on_launch(self, launch: int) -> None:
        for use in uses_of(self.plan, self.memory, self.name):
            owner = self.objects[use.object]
            self.memory.prefetch(owner.first_page, owner.pages)
