"""GMV: cuBLAS's product of a matrix and a vector, called again and again."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

from tidegate.options import Option
from tidegate.trace.trace import Launch
from tidegate.workloads.matrix_products import COLUMNS, ROWS, Grid, MatrixProduct, Operand, operand
from tidegate.workloads.program import Space, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.waves import WAVE_HELP


@workload("GMV")
class GMV(MatrixProduct):
    """y = A·x, A n × n floats, column-major: cublasSgemv, not transposed, as in MAGMA's gemvn.

    Thread t of block b has row i = 128 b + t; for j = 0, 1, … < n:

        sum += A[j n + i] * x[j]
        y[i] = sum                                    after the last j

    Operands: A is read once in every call, column after column, which is in order of address as
    long as all thread blocks are resident together (up to n = 83,968); x is read beside it; y is
    written at the end. Grid order: from the first row to the last. Access sites: 0 = A, 1 = x, 2 =
    y. Table II: "Matrix vector product (CUBLAS)", 23.6 GB.
    """

    bytes = published_footprint("GMV", "size of the matrix and both vectors together")
    iterations = Option(
        16,
        "how often the product is called (a choice, as for 2DC and BLK: the paper does not say, "
        "NVIDIA's sample calls it once)",
        least=1,
    )
    wave = Option(656, WAVE_HELP, least=1)
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

    @property
    def grid(self) -> Grid:
        return Grid(1, self.n, 1, self.tile)

    @property
    def depth(self) -> int:
        return self.n

    @property
    def flops(self) -> float:
        return 2.0 * self.n**2

    def operands(self, space: Space) -> tuple[Operand, ...]:
        n, page = self.n, space.geometry.page
        return (
            operand(space["A"], page, n, 0, COLUMNS),
            operand(space["x"], page, n, 1, ROWS, along=True),
            operand(space["y"], page, n, 2, write=True),
        )

    def launches(self, space: Space) -> Iterator[Launch]:
        for _ in range(self.iterations):
            yield from super().launches(space)
