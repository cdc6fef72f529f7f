"""GMV: cuBLAS's product of a matrix and a vector, called again and again."""

from __future__ import annotations

from math import isqrt

from tidegate.options import Option
from tidegate.workloads.matrix_products import (
    COLUMNS,
    ROWS,
    MatrixOperand,
    MatrixProduct,
    TileGrid,
    operand,
)
from tidegate.workloads.program import Launches, Space, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import FLOAT
from tidegate.workloads.waves import WaveWorkload


@workload("GMV")
class GMV(MatrixProduct):
    """y = A·x, A n × n floats, column-major: cublasSgemv, not transposed, as in MAGMA's gemvn.

    Thread t of block b has row i = 128 b + t; for j = 0, 1, … < n:

        sum += A[j n + i] * x[j]
        y[i] = sum                                    after the last j

    Operands: A is read once in every call, column after column, which is in order of address as
    long as all thread blocks are resident together (up to n = 83,968); x is read beside it; y is
    written at the end. In each step all thread blocks are at the same column, which lies in 5 pages
    of 64 KB at the paper's size, so a wave has as many lanes as a column has pages. Grid order:
    from the first row to the last. Access sites: 0 = A, 1 = x, 2 = y. Table II: "Matrix vector
    product (CUBLAS)", 23.6 GB, without a number of calls; NVIDIA's sample makes one.
    """

    bytes = published_footprint("GMV", "size of the matrix and both vectors together")
    iterations = Option(
        16, "calls of the product (a choice, as for 2DC and BLK: the paper does not say)", least=1
    )
    wave = WaveWorkload.wave
    lanes = Option(
        0, "blocks of the trace that share a wave's pages; 0: as many as a column's pages", least=0
    )
    tile = Option(128, "rows of a thread block (a choice)", least=1)
    slots = 1
    kernel = "sgemv"
    chunk = 1

    @property
    def n(self) -> int:
        """Rows and columns of A."""
        return isqrt(self.bytes // 4 + 1) - 1

    def sizes(self) -> dict[str, int]:
        return {"A": 4 * self.n**2, "x": 4 * self.n, "y": 4 * self.n}

    def product(self) -> tuple[TileGrid, int, float]:
        return TileGrid(1, self.n, 1, self.tile), self.n, 2.0 * self.n**2

    def operands(self, space: Space) -> tuple[MatrixOperand, ...]:
        n = self.n
        return (
            operand(space, "A", n, 0, COLUMNS),
            operand(space, "x", n, 1, ROWS, along=True),
            operand(space, "y", n, 2, write=True),
        )

    def lanes_in(self, space: Space) -> int:
        return self.lanes or -(-FLOAT * self.n // space.geometry.page)

    def launches(self, space: Space) -> Launches:
        for _ in range(self.iterations):
            yield from super().launches(space)
