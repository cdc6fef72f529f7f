"""cyclic: the same array again and again, the classic worst case of LRU."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate import units
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.sweep import sweep


@workload("cyclic")
class Cyclic(Workload):
    """Passes over one array, page by page, each read whole.

    A pass is a launch, so passes do not overlap.
    """

    provenance = Provenance.ASSUMED
    bytes = Option(units.size("1GiB"), "size of the array", parse=units.size, least=1)
    passes = Option(4, "how often the array is read", least=1)
    block = Option(4, "consecutive pages that a block reads", least=1)

    def sizes(self) -> dict[str, int]:
        return {"array": self.bytes}

    def launches(self, space: Space) -> Iterator[Launch]:
        for _ in range(self.passes):
            yield Launch("pass", sweep(space, ["array"], self.block))
