"""Management by global locality."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.policies.placement.objects import ObjectPlacement
from tidegate.policies.registries import placement
from tidegate.trace.plan import PlannedUse


@placement("glm")
class GLM(ObjectPlacement):
    """Prefer the objects that the whole program accesses most (SC'19, 3.3), so that objects
    that are near stay there.
    """

    def meet(self, uses: Sequence[PlannedUse]) -> None:
        """Do nothing: priorities are the program's and never change."""

    def worth(self, name: str) -> tuple[float, ...]:
        return (self.plan.global_locality.get(name, 0.0),)
