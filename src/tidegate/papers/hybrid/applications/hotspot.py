"""hotspot: a five-point stencil between two buffers that change places."""

from __future__ import annotations

import math

from tidegate.options import Option
from tidegate.papers.hybrid.applications.offloaded import Offloaded
from tidegate.workloads.offloaded import StreamedBytes, loop_launch
from tidegate.workloads.program import Launches, Space, footprint, workload


@workload("openmp-hotspot")
class Hotspot(Offloaded):
    """The temperature of a chip: examples/openmp/hotspot.c, one region, launched once per step.

        single_iteration  result[i] = f(temp[i], temp[i ± 1], temp[i ± side], power[i])

    Rows above and below are within a page or two of element i, which the neighbouring blocks have
    just used.
    """

    program = "hotspot"
    unwritten = frozenset(("result",))
    bytes = footprint("512MiB", "size of the three arrays together")
    steps = Option(2, "launches (as Rodinia runs it; the program's own default is 8)", least=1)

    def variables(self) -> dict[str, int]:
        return {"side": math.isqrt(self.bytes // 12)}

    def launches(self, space: Space) -> Launches:
        elements = self.variables()["side"] ** 2
        source, result = "temp", "result"
        for _ in range(self.steps):
            accesses = (
                StreamedBytes(source, 4),
                StreamedBytes("power", 4),
                StreamedBytes(result, 4, write=True),
            )
            yield loop_launch(space, "single_iteration", elements, *accesses)
            source, result = result, source
