"""GMM: cuBLAS's matrix multiplication."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.workloads.matrix_products import (
    COLUMNS,
    ROWS,
    TILE_HELP,
    MatrixOperand,
    MatrixProduct,
    TileGrid,
    operand,
)
from tidegate.workloads.program import Space, SquareMatrices, workload
from tidegate.workloads.suites import published_footprint


@workload("GMM")
class GMM(SquareMatrices, MatrixProduct):
    """C = A·B, n × n floats, column-major: cublasSgemm, as in CUTLASS, NVIDIA's published kernels.

    Thread block (bx, by) has the 128 × 128 tile of C from i0 = 128 bx and j0 = 128 by; for k = 0,
    8, 16, … < n:

        As[i][p] = A[(k + p) n + i0 + i]              rows i0 … i0 + 127, columns k … k + 7
        Bs[p][j] = B[(j0 + j) n + k + p]              rows k … k + 7, columns j0 … j0 + 127
        C[(j0 + j) n + i0 + i] = Σ As · Bs            after the last k

    Operands: B and C stream by columns of tiles; A is read once for every column of tiles. Grid
    order: bx fastest, which is down the columns of tiles. With a ``swizzle`` of s, s columns of
    tiles are walked together, row by row. Access sites: 0 = A, 1 = B, 2 = C. Table II: "Matrix
    multiplication (CUBLAS)", 12.0 GB.
    """

    arrays = ("A", "B", "C")
    bytes = published_footprint("GMM", "size of the three matrices together")
    tile = Option(128, TILE_HELP, least=1)
    swizzle = Option(1, "columns of tiles walked together (a choice: CUTLASS's default)", least=1)
    kernel = "sgemm"

    def product(self) -> tuple[TileGrid, int, float]:
        grid = TileGrid(self.n, self.n, self.tile, self.tile, self.swizzle)
        return grid, self.n, 2.0 * self.n**3

    def operands(self, space: Space) -> tuple[MatrixOperand, ...]:
        n = self.n
        return (
            operand(space, "A", n, 0, COLUMNS),
            operand(space, "B", n, 1, ROWS, along=True),
            operand(space, "C", n, 2, write=True),
        )
