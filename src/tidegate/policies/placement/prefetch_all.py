"""Everything a launch uses is brought near before it begins."""

from __future__ import annotations

from tidegate.policies.placement.objects import Planned
from tidegate.policies.registries import placement


@placement("prefetch-all")
class PrefetchAll(Planned):
    """Prefetch every object a launch uses, whether or not there is room for all of them (SC'19,
    2.3: UM_PF).
    """

    def on_launch(self, launch: int) -> None:
        for use in self.uses():
            owner = self.objects[use.object]
            self.memory.prefetch(owner.first_page, owner.pages)
