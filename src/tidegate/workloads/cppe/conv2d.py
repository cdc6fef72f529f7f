"""2DC: PolyBench's two-dimensional convolution, once."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt
from typing import Any

from tidegate.compiled.jit import jit
from tidegate.trace.trace import Launch
from tidegate.workloads.program import Derived, Space, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import (
    across,
    end_block,
    has_room,
    inside,
    kernel_launch,
    tile_of,
    use_rect,
)

TILE_X, TILE_Y = 32, 8  # the thread block of PolyBench/GPU's 2DCONV
_A, _B = range(2)


@workload("cppe-2DC")
class Convolution2D(Derived):
    """A convolution with 3 × 3 weights, n × n floats, row-major: 2DCONV of PolyBench/GPU.

    Thread blocks have 32 × 8 threads.

        j, i = blockIdx.x * 32 + threadIdx.x, blockIdx.y * 8 + threadIdx.y
        B[i n + j] = Σ c[p][q] * A[(i + p) n + j + q],  p, q = -1, 0, 1      where 0 < i, j < n - 1

    Operands: A is read, B is written. Grid order: blockIdx.x fastest. Access sites: 0 = A, 1 = B.
    PolyBench calls it once. Table II: 2DCONV, 128 MB, Type I; two matrices of 4096 × 4096 make 128
    MiB.
    """

    bytes = published_footprint("cppe-2DC", "size of both matrices together")

    @property
    def n(self) -> int:
        """Rows and columns of a matrix; fewer than three have nothing inside."""
        n = isqrt(self.bytes // 8)
        return n if n > 2 else 0

    def sizes(self) -> dict[str, int]:
        return {"A": 4 * self.n**2, "B": 4 * self.n**2}

    def launches(self, space: Space) -> Iterator[Launch]:
        count = across(self.n, TILE_X) * across(self.n, TILE_Y)
        yield kernel_launch(space, "convolution2D", _convolution, count, (self.n,))


@jit
def _convolution(log: Any, block: int, count: int, shape: Any) -> Any:
    n = shape[0]
    while block < count and has_room(log):
        rows, columns = tile_of(block, n, TILE_X, TILE_Y)
        (top, bottom), (left, right) = inside(rows, n), inside(columns, n)
        if top < bottom and left < right:
            use_rect(log, _A, n, (top - 1, bottom + 1), (left - 1, right + 1), False)
            use_rect(log, _B, n, (top, bottom), (left, right), True)
        block += end_block(log)
    return block
