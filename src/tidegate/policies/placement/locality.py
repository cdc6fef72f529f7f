"""SC'19's management of whole objects: by last use, by regional and by global locality, and by
reuse distance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tidegate.options import Option
from tidegate.policies.placement.objects import ObjectPlacement
from tidegate.policies.registries import placement
from tidegate.trace.plan import PlannedUse


@placement("object-lru")
class ObjectLRU(ObjectPlacement):
    """Keep the objects near that were used last, and leave the others far (SC'19, 5.2: "LRU").

    Objects of one launch are equally recent, so none of them replaces another; all are
    prefetched.
    """

    transfer = Option(
        "explicit", "how near objects come", choices=("density", "explicit", "implicit")
    )

    def start(self) -> None:
        super().start()
        self.used = dict.fromkeys(self.objects, 0)

    def meet(self, uses: Sequence[PlannedUse]) -> None:
        for use in uses:
            self.used[use.object] = self.clock

    def worth(self, name: str) -> tuple[float, ...]:
        return (self.used[name],)


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
