"""Management by regional and by global locality."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.options import Option
from tidegate.policies.placement.objects import ObjectPlacement
from tidegate.policies.registries import placement
from tidegate.trace.plan import PlannedUse


@placement("rlm")
class RLM(ObjectPlacement):
    """Prefer the objects that this launch accesses most (SC'19, 3.2).

    The object of the lowest priority on record is replaced first. Only objects of the same launch
    with higher priority are protected, so other launches' objects make room whatever theirs is.
    """

    remember = Option(
        True, "an object that is not used keeps its last priority; otherwise it has none"
    )

    def start(self) -> None:
        super().start()
        self.locality = dict.fromkeys(self.objects, 0.0)

    def meet(self, uses: Sequence[PlannedUse]) -> None:
        if not self.remember:
            self.locality = dict.fromkeys(self.objects, 0.0)
        self.locality.update({use.object: use.locality for use in uses})
        self.used = {use.object for use in uses}

    def is_protected(self, other: str, own: tuple[float, ...]) -> bool:
        return other in self.used and super().is_protected(other, own)

    def worth(self, name: str) -> tuple[float, ...]:
        return (self.locality[name],)


@placement("glm")
class GLM(ObjectPlacement):
    """Prefer the objects that the whole program accesses most (SC'19, 3.3), so that objects
    that are near stay there.
    """

    def meet(self, uses: Sequence[PlannedUse]) -> None:
        """Do nothing: priorities are the program's and never change."""

    def worth(self, name: str) -> tuple[float, ...]:
        return (self.plan.global_locality.get(name, 0.0),)
