"""HEL: Hellinger distances, a product of matrices with square roots in it."""

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
from tidegate.workloads.program import Space, efficiency_option, workload
from tidegate.workloads.suites import published_footprint

_SHAPES = {"1:2:4": (1, 2, 4), "square": (1, 1, 1)}  # M : N : P


@workload("HEL")
class HEL(MatrixProduct):
    """Hellinger distances of rows of A and columns of B, row-major: hellinger-cuda of HeCBench.

    A is M × N, B is N × P, C is M × P floats. Thread (row, col), for i = 0, 1, … < N:

        sum += sqrtf(a[row * N + i] * b[i * P + col])
        c[row * P + col] = sqrtf(max(0, 1 - sum))                after the last i

    Operands: A and C stream by rows of tiles; B is read once for every row of tiles. Grid order:
    columns fastest. HeCBench has M : N : P = 1 : 2 : 4 and thread blocks of 16 × 16, and repeats
    the call only to time it. Access sites: 0 = A, 1 = B, 2 = C. Table II: "Hellinger algorithm",
    7.9 GB.
    """

    bytes = published_footprint("HEL", "size of the three matrices together")
    shape = Option(
        "1:2:4", "M : N : P (a choice: HeCBench's; the paper does not say)", choices=tuple(_SHAPES)
    )
    tile = Option(
        32, "side of a tile of C (a choice: four of the kernel's 16 × 16 thread blocks)", least=1
    )
    wave = Option(656, "tiles resident together (a choice, as in matmul)", least=1)
    efficiency = efficiency_option(0.1)  # as in matmul
    slots = 1
    kernel = "hellinger"
    chunk = 1

    @property
    def sides(self) -> tuple[int, int, int]:
        """M, N and P."""
        m, n, p = _SHAPES[self.shape]
        unit = isqrt(self.bytes // (4 * (m * n + n * p + m * p)))
        return m * unit, n * unit, p * unit

    def sizes(self) -> dict[str, int]:
        m, n, p = self.sides
        return {"A": 4 * m * n, "B": 4 * n * p, "C": 4 * m * p}

    def product(self) -> tuple[TileGrid, int, float]:
        m, n, p = self.sides
        flops = 3.0 * m * n * p  # a product, a square root and a sum
        return TileGrid(m, p, self.tile, self.tile), n, flops

    def operands(self, space: Space) -> tuple[MatrixOperand, ...]:
        _, n, p = self.sides
        return (
            operand(space, "A", n, 0, ROWS, along=True),
            operand(space, "B", p, 1, COLUMNS),
            operand(space, "C", p, 2, write=True),
        )
