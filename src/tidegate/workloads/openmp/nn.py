"""nn: the distance of every record from one place."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate import units
from tidegate.options import Option
from tidegate.trace.trace import Launch
from tidegate.workloads.openmp.offloaded import Offloaded, Stream, region
from tidegate.workloads.program import Space, workload


@workload("openmp-nn")
class NN(Offloaded):
    """Nearest neighbours: examples/openmp/nn.c, one region, launched once.

    euclid  distances[i] = f(locations[i])
    """

    program = "nn"
    fresh = frozenset(("distances",))
    bytes = Option(
        units.size("512MiB"), "size of the two arrays together", parse=units.size, least=1
    )

    def variables(self) -> dict[str, int]:
        return {"n": self.bytes // 12}

    def launches(self, space: Space) -> Iterator[Launch]:
        yield region(
            space,
            "euclid",
            self.bytes // 12,
            (Stream("locations", 8), Stream("distances", 4, write=True)),
        )
