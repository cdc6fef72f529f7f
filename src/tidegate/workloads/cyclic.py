"""cyclic: the same array again and again, the classic worst case of LRU."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.trace.trace import Launch
from tidegate.workloads.elementwise import one_pass
from tidegate.workloads.program import Launches, Space, Workload, footprint, workload


@workload("cyclic")
class Cyclic(Workload):
    """Passes over one array, page by page, each read whole.

    A pass is a launch, so passes do not overlap.
    """

    bytes = footprint("1GiB", "size of the array")
    passes = Option(4, "how often the array is read", least=1)
    block = Option(4, "consecutive pages that a block reads", least=1)

    def sizes(self) -> dict[str, int]:
        return {"array": self.bytes}

    def launches(self, space: Space) -> Launches:
        for _ in range(self.passes):
            yield Launch("pass", one_pass(space, ["array"], self.block))
