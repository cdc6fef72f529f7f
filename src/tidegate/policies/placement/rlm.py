"""Management by regional locality."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.options import Option
from tidegate.policies.placement.objects import ObjectPlacement
from tidegate.policies.registries import placement
from tidegate.trace.plan import PlannedUse


@placement("rlm")
class RLM(ObjectPlacement):
    """Prefer the objects that this launch accesses most (SC'19, 3.2).

    An object that the launch does not use has no locality in it and is replaced first. The paper
    also has a priority on record: with ``remember``, an object keeps the locality of the last
    launch that used it.
    """

    remember = Option(
        False, "an object that is not used keeps its last priority (a reading of 3.2)"
    )

    def start(self) -> None:
        super().start()
        self.locality = dict.fromkeys(self.objects, 0.0)

    def meet(self, uses: Sequence[PlannedUse]) -> None:
        if not self.remember:
            self.locality = dict.fromkeys(self.objects, 0.0)
        self.locality.update({use.object: use.locality for use in uses})

    def worth(self, name: str) -> tuple[float, ...]:
        return (self.locality[name],)
