"""SRK: cuBLAS's symmetric rank-k update."""

from __future__ import annotations

from math import sqrt

from tidegate.options import Option
from tidegate.workloads.matrix_products import (
    BOTH,
    TILE_HELP,
    MatrixOperand,
    MatrixProduct,
    TileGrid,
    operand,
)
from tidegate.workloads.program import Space, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import FLOAT

FLOATS_PER_DOUBLE = 64  # operations in the time of one (NVIDIA GA102 whitepaper)


class RankUpdate(MatrixProduct):
    """What SRK and SR2 have in common: a triangle of C in tiles, and operands of n × k numbers.

    CUTLASS's thread blocks outside the triangle return at once, so only the others count. The paper
    cites NVIDIA's samples (CUDALibrarySamples, syrk and syr2k), and uplo and trans are theirs. They
    compute with doubles, at sizes of 2 × 2; Table II's sizes are round for floats (GMM n = 32 Ki;
    here n = k = 35 Ki, and 28 Ki × 24 Ki or 24 Ki × 32 Ki), so ``double`` is a reading.
    """

    depth_ratio = Option(1.0, "k / n (a choice: the paper does not say)", least=0.01, most=100)
    uplo = Option(
        "upper",
        "the triangle of C that is computed (NVIDIA's samples: upper)",
        choices=("upper", "lower"),
    )
    trans = Option("N", "N: operands are n × k; T: k × n, transposed", choices=("N", "T"))
    double = Option(False, "doubles instead of floats, as in NVIDIA's samples")
    tile = Option(128, TILE_HELP, least=1)
    factors: tuple[str, ...] = ("A",)  # the operands

    @property
    def element(self) -> int:  # type: ignore[override]
        """Bytes of a number."""
        return 8 if self.double else FLOAT

    @property
    def n(self) -> int:
        """Rows and columns of C."""
        return int(sqrt(self.bytes / self.element / (1 + len(self.factors) * self.depth_ratio)))

    @property
    def depth(self) -> int:
        return max(1, int(self.depth_ratio * self.n))

    def sizes(self) -> dict[str, int]:
        each = self.element * self.n
        return {**dict.fromkeys(self.factors, each * self.depth), "C": each * self.n}

    def product(self) -> tuple[TileGrid, int, float]:
        # C's lower triangle, column-major, is right of the diagonal in its row-major transpose.
        triangle = 1 if self.uplo == "lower" else -1
        grid = TileGrid(self.n, self.n, self.tile, self.tile, triangle=triangle)
        flops = 1.0 * len(self.factors) * self.n * (self.n + 1) * self.depth
        return grid, self.depth, flops * (FLOATS_PER_DOUBLE if self.double else 1)

    def factor(self, space: Space, name: str, which: int, turn: int = 0) -> MatrixOperand:
        """Return an operand; column-major n × k is row-major k × n, read from row to row."""
        along = self.trans == "T"
        pitch, site = self.depth if along else self.n, self.factors.index(name)
        return operand(space, name, pitch, site, which, along, turn=turn, element=self.element)

    def output(self, space: Space) -> MatrixOperand:
        site = len(self.factors)
        return operand(space, "C", self.n, site, write=True, element=self.element)


@workload("SRK")
class SRK(RankUpdate):
    """C = Aᵀ·A, upper triangle, column-major floats: cublasSsyrk, as in CUTLASS's RankK.

    C is n × n, A is k × n. Thread block (bx, by), bx ≤ by, has the tile of C from i0 = 128 bx and
    j0 = 128 by; for l = 0, 8, 16, … < k:

        As[i][p] = A[(i0 + i) k + l + p]              columns i0 … i0 + 127, rows l … l + 7
        Bs[p][j] = A[(j0 + j) k + l + p]              columns j0 … j0 + 127, the same rows
        C[(j0 + j) n + i0 + i] = Σ As · Bs            after the last l, where i0 + i ≤ j0 + j

    Operands: C's triangle streams by columns of tiles; A is read once for every column of tiles, up
    to column j0 + 127, so that its first columns are used most often. Grid order: bx fastest.
    Access sites: 0 = A, 1 = C. Table II: "Symmetric rank-k operation (CUBLAS)", 9.6 GB.
    """

    bytes = published_footprint("SRK", "size of both matrices together")
    trans = Option("T", "T: A is k × n, transposed (NVIDIA's sample); N: n × k", choices=("T", "N"))
    kernel = "ssyrk"

    def operands(self, space: Space) -> tuple[MatrixOperand, ...]:
        return self.factor(space, "A", BOTH), self.output(space)
