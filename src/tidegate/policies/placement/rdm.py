"""Management by target reuse distance."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tidegate.options import Option
from tidegate.policies.placement.objects import ObjectPlacement
from tidegate.policies.registries import placement
from tidegate.trace.plan import PlannedUse


@placement("rdm")
class RDM(ObjectPlacement):
    """Prefer the objects that are used again soonest, as Belady would with objects for pages
    (SC'19, 3.4).

    The next use of an object is predicted when a launch uses it: the number of this launch (the
    target region counter) and the compiler's distance. The object whose next use is furthest is
    replaced; of two with the same, the one of lower global locality.
    """

    partial = Option(
        "rest",
        "is an object that finds too little room mapped partly: with the rest of it, when all "
        "others were seen to; or at once, in its turn (3.4)",
        choices=("no", "rest", "at once"),
    )

    def start(self) -> None:
        super().start()
        self.next_use = dict.fromkeys(self.objects, math.inf)

    def meet(self, uses: Sequence[PlannedUse]) -> None:
        self.next_use.update({use.object: self.clock + use.distance for use in uses})

    def worth(self, name: str) -> tuple[float, ...]:
        return (-self.next_use[name], self.plan.global_locality.get(name, 0.0))
