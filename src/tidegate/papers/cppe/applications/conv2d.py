"""2DC: PolyBench's two-dimensional convolution, once."""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit
from tidegate.workloads.program import Launches, Space, SquareMatrices, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import across, blocks, launch_of, tile_of, use_rect

TILE_X, TILE_Y = 32, 8  # the thread block of PolyBench/GPU's 2DCONV
_A, _B = range(2)


@workload("cppe-2DC")
class Convolution2D(SquareMatrices):
    """A convolution with 3 × 3 weights, n × n floats, row-major: 2DCONV of PolyBench/GPU.

    Thread blocks have 32 × 8 threads.

        j, i = blockIdx.x * 32 + threadIdx.x, blockIdx.y * 8 + threadIdx.y
        B[i n + j] = Σ c[p][q] * A[(i + p) n + j + q],  p, q = -1, 0, 1      where 0 < i, j < n - 1

    Operands: A is read, B is written. Grid order: blockIdx.x fastest. Access sites: 0 = A, 1 = B.
    PolyBench calls it once. Table II: 2DCONV, 128 MB, Type I; two matrices of 4096 × 4096 make 128
    MiB.
    """

    arrays = ("A", "B")
    bytes = published_footprint("cppe-2DC", "size of both matrices together")

    @property
    def n(self) -> int:
        """Rows and columns of a matrix; fewer than three have nothing inside."""
        return super().n if super().n > 2 else 0

    def launches(self, space: Space) -> Launches:
        count = across(self.n, TILE_X) * across(self.n, TILE_Y)
        yield launch_of(space, "convolution2D", _convolution, count, (self.n,))


@jit
def _convolution(log: Any, count: int, shape: Any) -> None:
    n = shape[0]
    for block in blocks(log, count):
        (top, bottom), (left, right) = tile_of(block, n, TILE_X, TILE_Y, 1)
        if top < bottom and left < right:
            use_rect(log, _A, n, (top - 1, bottom + 1), (left - 1, right + 1), False)
            use_rect(log, _B, n, (top, bottom), (left, right), True)
