"""HOT: the heat of a chip, a tile of it per thread block, two time steps at once."""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.workloads.program import Launches, Space, SquareMatrices, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import across, blocks, launch_of, use_rect

TILE = 16  # BLOCK_SIZE
_POWER = 2  # the access site after the two temperatures


@workload("cppe-HOT")
class Hotspot(SquareMatrices):
    """Heat on an n × n grid of floats: hotspot of Rodinia, thread blocks of 16 × 16.

    With ``pyramid`` time steps a launch:

        small = 16 - 2 * steps;  x, y = small * bx - pyramid + tx, small * by - pyramid + ty
        load    temp_src[y n + x], power[y n + x]      where 0 <= x, y < n
        store   temp_dst[y n + x]                      for steps <= tx, ty < 16 - steps: the tile
                                                       that is right after that many time steps

    Operands: both temperatures, which change places, and the power. Grid order: blockIdx.x fastest.
    Access sites: 0, 1 = the temperatures, 2 = power. Table II: hotspot, 12 MB, Type I; three
    matrices of 1024 × 1024 make 12 MiB.
    """

    arrays = ("temp_0", "temp_1", "power")
    bytes = published_footprint("cppe-HOT", "size of the three matrices")
    iterations = Option(2, "time steps (a choice: 2, as in Rodinia's script)", least=1)
    pyramid = Option(
        2, "time steps in a launch (a choice: 2, as in Rodinia's script)", least=1, most=7
    )

    def launches(self, space: Space) -> Launches:
        tiles = across(self.n, TILE - 2 * self.pyramid)
        for launch, done in enumerate(range(0, self.iterations, self.pyramid)):
            steps = min(self.pyramid, self.iterations - done)
            shape = (self.n, tiles, steps, self.pyramid, launch % 2)
            yield launch_of(space, "calculate_temp", _calculate_temp, tiles**2, shape)


@jit
def _calculate_temp(log: Any, count: int, shape: Any) -> None:
    n, tiles, steps, border, source = shape
    small = TILE - 2 * steps
    for block in blocks(log, count):
        top, left = small * (block // tiles) - border, small * (block % tiles) - border
        rows, columns = (max(0, top), min(n, top + TILE)), (left, left + TILE)
        use_rect(log, source, n, rows, columns, False)
        use_rect(log, _POWER, n, rows, columns, False)
        top, left = top + steps, left + steps
        rows, columns = (max(0, top), min(n, top + small)), (left, left + small)
        use_rect(log, 1 - source, n, rows, columns, True)
