"""Least recently used, by objects."""

from __future__ import annotations

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
