"""A five-point stencil by 16 × 16 thread blocks: bench_stencil of SpecAsync-UVM."""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch
from tidegate.workloads.program import Launches, Space, SquareMatrices, footprint, workload
from tidegate.workloads.thread_blocks import blocks, segments, tile_of, use_rect

_TILE = 16
_MERGED = 16  # thread blocks side by side, which use the same pages: one block of the trace


@workload("tiled-stencil")
class TiledStencil(SquareMatrices):
    """A stencil on two n × n grids of floats that change places after each launch.

        row, col = blockIdx.y * 16 + threadIdx.y, blockIdx.x * 16 + threadIdx.x    not at the edge
        dst[row][col] = 0.25 * (src[row-1][col] + src[row+1][col]
                                + src[row][col-1] + src[row][col+1])

    16 thread blocks beside each other in a row are one block of width 16. Rows of a halo are
    cached, so a row's bytes count once. Access sites: 0 = even, 1 = odd.
    """

    arrays = ("even", "odd")
    bytes = footprint("512MiB", "size of both grids together")
    iterations = Option(20, "how often the stencil is applied", least=1)

    def launches(self, space: Space) -> Launches:
        wide = _TILE * _MERGED
        count = -(-self.n // wide) * -(-self.n // _TILE)
        for number in range(self.iterations):
            source = number % 2
            touches = segments(space, _stencil, count, (self.n, wide, source))
            yield Launch("stencil", touches, width=_MERGED)


@jit
def _stencil(log: Any, count: int, shape: Any) -> None:
    n, wide, source = shape
    for block in blocks(log, count):
        rows, columns = tile_of(block, n, wide, _TILE, 1)
        use_rect(log, source, n, (rows[0] - 1, rows[1] + 1), columns, False)
        use_rect(log, 1 - source, n, rows, columns, True)
