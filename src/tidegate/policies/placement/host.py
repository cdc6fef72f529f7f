"""Everything stays in host memory."""

from __future__ import annotations

from tidegate.policies.interface.policy import PlacementPolicy
from tidegate.policies.registries import placement


@placement("host")
class Host(PlacementPolicy):
    """Prefer far memory for every object, so that each touch crosses the link and nothing migrates
    (SC'19's Host).
    """

    def on_launch(self, launch: int) -> None:
        if launch == 0:
            for o in self.memory.objects:
                self.memory.advise(o.first_page, o.pages, "far")
