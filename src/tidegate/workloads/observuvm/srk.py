"""SRK: cuBLAS's symmetric rank-k update."""

from __future__ import annotations

from math import sqrt

from tidegate.options import Option
from tidegate.workloads.matrix_products import (
    BOTH,
    TILE_HELP,
    Grid,
    MatrixProduct,
    Operand,
    operand,
)
from tidegate.workloads.program import Space, workload
from tidegate.workloads.suites import published_footprint


class RankUpdate(MatrixProduct):
    """What SRK and SR2 have in common: a triangle of C in tiles, and operands of n × k floats.

    CUTLASS's thread blocks outside the triangle return at once, so only the others count.
    """

    depth_ratio = Option(
        1.0, "k / n (a choice: NVIDIA's sample; the paper does not say)", least=0.01, most=100
    )
    uplo = Option(
        "lower", "the triangle of C that is computed (a choice)", choices=("lower", "upper")
    )
    trans = Option(
        "N", "N: operands are n × k; T: k × n, transposed (a choice)", choices=("N", "T")
    )
    tile = Option(128, TILE_HELP, least=1)
    factors: tuple[str, ...] = ("A",)  # the operands

    @property
    def n(self) -> int:
        """Rows and columns of C."""
        return int(sqrt(self.bytes / 4 / (1 + len(self.factors) * self.depth_ratio)))

    @property
    def depth(self) -> int:
        return max(1, int(self.depth_ratio * self.n))

    def sizes(self) -> dict[str, int]:
        return {**dict.fromkeys(self.factors, 4 * self.n * self.depth), "C": 4 * self.n**2}

    def product(self) -> tuple[Grid, int, float]:
        # C's lower triangle, column-major, is right of the diagonal in its row-major transpose.
        triangle = 1 if self.uplo == "lower" else -1
        grid = Grid(self.n, self.n, self.tile, self.tile, triangle=triangle)
        flops = 1.0 * len(self.factors) * self.n * (self.n + 1) * self.depth
        return grid, self.depth, flops

    def factor(self, space: Space, name: str, which: int, turn: int = 0) -> Operand:
        """Return an operand; column-major n × k is row-major k × n, read from row to row."""
        along = self.trans == "T"
        pitch, site = self.depth if along else self.n, self.factors.index(name)
        return operand(space, name, pitch, site, which, along, turn=turn)

    def output(self, space: Space) -> Operand:
        return operand(space, "C", self.n, len(self.factors), write=True)


@workload("SRK")
class SRK(RankUpdate):
    """C = A·Aᵀ, lower triangle, column-major floats: cublasSsyrk, as in CUTLASS's RankK.

    C is n × n, A is n × k. Thread block (bx, by), bx ≥ by, has the tile of C from i0 = 128 bx and
    j0 = 128 by; for l = 0, 8, 16, … < k:

        As[i][p] = A[(l + p) n + i0 + i]              rows i0 … i0 + 127, columns l … l + 7
        Bs[p][j] = A[(l + p) n + j0 + j]              rows j0 … j0 + 127, the same columns
        C[(j0 + j) n + i0 + i] = Σ As · Bs            after the last l, where i0 + i ≥ j0 + j

    Operands: C's triangle streams by columns of tiles; A is read once for every column of tiles,
    from row j0 on, so that rows further down are used more often. Grid order: bx fastest. Access
    sites: 0 = A, 1 = C. Table II: "Symmetric rank-k operation (CUBLAS)", 9.6 GB.
    """

    bytes = published_footprint("SRK", "size of both matrices together")
    kernel = "ssyrk"

    def operands(self, space: Space) -> tuple[Operand, ...]:
        return self.factor(space, "A", BOTH), self.output(space)
