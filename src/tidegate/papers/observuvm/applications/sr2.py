"""SR2: cuBLAS's symmetric rank-2k update."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.papers.observuvm.applications.srk import RankUpdate
from tidegate.workloads.matrix_products import COLUMNS, ROWS, MatrixOperand
from tidegate.workloads.program import Space, workload
from tidegate.workloads.suites import published_footprint


@workload("SR2")
class SR2(RankUpdate):
    """C = A·Bᵀ + B·Aᵀ, upper triangle, column-major floats: cublasSsyr2k, as in CUTLASS's Rank2K.

    C is n × n, A and B are n × k. Thread block (bx, by), bx ≤ by, has the tile of C from i0 = 128
    bx and j0 = 128 by; for l = 0, 8, 16, … < k:

        As[i][p] = A[(l + p) n + i0 + i]              rows i0 … i0 + 127, columns l … l + 7
        Bs[p][j] = B[(l + p) n + j0 + j]              rows j0 … j0 + 127, the same columns
        accumulate As · Bs

    then all l again with A and B exchanged, then C[(j0 + j) n + i0 + i] where i0 + i ≤ j0 + j.

    Operands: C's triangle streams by columns of tiles; A and B are each read once for every column
    of tiles, up to row j0 + 127. Grid order: bx fastest. Access sites: 0 = A, 1 = B, 2 = C. Table
    II: "Symmetric rank-2k operation (CUBLAS)", 8.3 GB. With n = k that is no round size; 28 Ki × 24
    Ki and 24 Ki × 32 Ki are.
    """

    bytes = published_footprint("SR2", "size of the three matrices together")
    depth_ratio = Option(
        24 / 28, "k / n (a choice: 28 Ki × 24 Ki; 4/3 is 24 Ki × 32 Ki)", least=0.01, most=100
    )
    kernel = "ssyr2k"
    factors = ("A", "B")

    def operands(self, space: Space) -> tuple[MatrixOperand, ...]:
        return (
            self.factor(space, "A", COLUMNS),
            self.factor(space, "B", ROWS),
            self.factor(space, "A", ROWS, turn=1),
            self.factor(space, "B", COLUMNS, turn=1),
            self.output(space),
        )
