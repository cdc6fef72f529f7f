"""HOT: the heat of a chip, a tile of it per thread block, two time steps at once."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt
from typing import Any

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.cppe.kernel import closed, going, rect, stream
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.suites import published_bytes

TILE = 16  # BLOCK_SIZE
_POWER = 2  # the reference after the two temperatures


@workload("cppe-HOT")
class Hotspot(Workload):
    """Heat on an n × n grid of floats: hotspot of Rodinia, thread blocks of 16 × 16, ``pyramid``
    time steps a launch.

        small = 16 - 2 * steps;  x, y = small * bx - pyramid + tx, small * by - pyramid + ty
        load    temp_src[y n + x], power[y n + x]                            where 0 <= x, y < n
        store   temp_dst[y n + x]     for steps <= tx, ty < 16 - steps, the tile that is right after that many time steps

    Operands: both temperatures, which change places, and the power. Grid order: blockIdx.x fastest.
    References: 0, 1 = the temperatures, 2 = power. Table II: hotspot, 12 MB, Type I; three matrices
    of 1024 × 1024 make 12 MiB.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        published_bytes("cppe", "cppe-HOT"), "size of the three matrices", parse=units.size, least=1
    )
    iterations = Option(2, "time steps (a choice: 2, as Rodinia's script)", least=1)
    pyramid = Option(
        2, "time steps in a launch (a choice: 2, as Rodinia's script)", least=1, most=7
    )

    @property
    def n(self) -> int:
        """Rows and columns of a matrix."""
        return isqrt(self.bytes // 12)

    def sizes(self) -> dict[str, int]:
        return dict.fromkeys(("temp_0", "temp_1", "power"), 4 * self.n**2)

    def launches(self, space: Space) -> Iterator[Launch]:
        across_n = -(-self.n // (TILE - 2 * self.pyramid))
        for launch, done in enumerate(range(0, self.iterations, self.pyramid)):
            steps = min(self.pyramid, self.iterations - done)
            shape = (self.n, across_n, steps, self.pyramid, launch % 2)
            yield Launch("calculate_temp", stream(space, _calculate_temp, across_n**2, shape))


@jit
def _calculate_temp(log: Any, block: int, count: int, shape: Any) -> Any:
    n, across_n, steps, border, source = shape
    small = TILE - 2 * steps
    while block < count and going(log):
        top, left = small * (block // across_n) - border, small * (block % across_n) - border
        loaded = (max(0, top), min(n, top + TILE)), (left, left + TILE)
        rect(log, source, n, loaded[0], loaded[1], False)
        rect(log, _POWER, n, loaded[0], loaded[1], False)
        rows, columns = (
            (max(0, top + steps), min(n, top + steps + small)),
            (left + steps, left + steps + small),
        )
        rect(log, 1 - source, n, rows, columns, True)
        block += closed(log)
    return block
