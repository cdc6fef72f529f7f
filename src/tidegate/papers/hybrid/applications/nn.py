"""nn: the distance of every record from one place."""

from __future__ import annotations

from tidegate.papers.hybrid.applications.offloaded import Offloaded
from tidegate.workloads.offloaded import StreamedBytes, loop_launch
from tidegate.workloads.program import Launches, Space, footprint, workload


@workload("openmp-nn")
class NN(Offloaded):
    """Nearest neighbours: examples/openmp/nn.c, one kernel region, launched once.

    euclid  distances[i] = f(locations[i])
    """

    program = "nn"
    unwritten = frozenset(("distances",))
    bytes = footprint("512MiB", "size of the two arrays together")

    def variables(self) -> dict[str, int]:
        return {"n": self.bytes // 12}

    def launches(self, space: Space) -> Launches:
        accesses = StreamedBytes("locations", 8), StreamedBytes("distances", 4, write=True)
        yield loop_launch(space, "euclid", self.bytes // 12, *accesses)
