"""LU: cuSOLVER's factorisation of a matrix into a lower and an upper triangle."""

from __future__ import annotations

from math import isqrt
from typing import Any

from tidegate.options import Option
from tidegate.trace.trace import Launch
from tidegate.workloads.matrix_products import (
    COLUMNS,
    ROWS,
    MatrixOperand,
    ProductShape,
    TileGrid,
    operand,
    product_launch,
)
from tidegate.workloads.program import Launches, Space, efficiency_option, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.waves import WaveWorkload

_SLOTS = 1  # that one thread block takes, so that a wave fills the 656 slots of 82 SMs with 8 each
_CHUNK = 8  # floats of the depth in a step


@workload("LU")
class LU(WaveWorkload):
    """A = L·U in place, A n × n floats, column-major: cusolverDnSgetrf, right-looking.

    cuSOLVER's kernels are not published; this is the algorithm of LAPACK's and MAGMA's getrf, in
    blocks of ``nb`` columns. For p = 0, nb, 2 nb, …:

        getf2   A[p:, p:p+nb] = L·U                             the panel, column by column
        laswp   rows of all other columns change places         if ``pivot``; the sample has none
        trsm    A[p:p+nb, p+nb:] = L11⁻¹ · A[p:p+nb, p+nb:]     128 columns to a thread block
        gemm    A[p+nb:, p+nb:] -= A[p+nb:, p:p+nb] · A[p:p+nb, p+nb:]
                                                                as in GMM, 128 × 128

    Operands: every step uses the part of A that is left, which shrinks from all of A to nothing;
    within a gemm the panel is read once for every column of tiles. Grid order: down the columns of
    tiles. The panel's pages are listed once as read and once as written, though getf2 walks over
    them many times: nothing else is used meanwhile. trsm reads the whole diagonal block, and its
    columns from top to bottom before it stores them; gemm loads its tile after the last step and
    then stores it. A pivot may come from any row below, so laswp is assumed to use every page from
    row p on. Access sites: 0 = the panel (L), 1 = the rows of U, 2 = the rest. Table II:
    "Lower-upper decomposition (CUSOLVER)", 12.0 GB.
    """

    bytes = published_footprint("LU", "size of the matrix")
    nb = Option(1024, "columns of a panel (a choice: MAGMA's for matrices of this size)", least=1)
    pivot = Option(False, "whether rows change places (a choice: cuSOLVER's sample has none)")
    tile = Option(128, "side of a thread block's tile (a choice: CUTLASS's default)", least=1)
    # 164 thread blocks, 82 SMs with 2 each, are resident together. Four times as many need well
    # under half as many touches, and share a panel that stays near anyway.
    wave = Option(
        656, "thread blocks that walk in step (a choice: four times those resident)", least=1
    )
    efficiency = efficiency_option(0.9)

    @property
    def n(self) -> int:
        """Rows and columns of A."""
        return isqrt(self.bytes // 4)

    def sizes(self) -> dict[str, int]:
        return {"A": 4 * self.n**2}

    def launches(self, space: Space) -> Launches:
        n = self.n
        for p in range(0, n, self.nb):
            width = min(self.nb, n - p)
            flops = float(width) ** 2 * (n - p - width / 3)
            yield self._in_place(space, "getf2", (p, p + width), p, flops, 0)
            if self.pivot and p:
                yield self._in_place(space, "laswp", (0, p), p, 0.0, 0)
            if p + width < n:
                if self.pivot:
                    yield self._in_place(space, "laswp", (p + width, n), p, 0.0, 2)
                yield self._trsm(space, p, width)
                yield self._gemm(space, p, width)

    # Below, A is row-major, as ``matrix_products`` has it: A's columns are rows.

    def _in_place(
        self, space: Space, kernel: str, columns: tuple[int, int], row: int, flops: float, site: int
    ) -> Launch:
        """Read and write columns of A (first, stop), from ``row`` on, one after another."""
        first, stop = columns
        grid = TileGrid(stop - first, self.n - row, tall=1, wide=self.n - row)
        read = self._part(space, first, row, site, ROWS, along=True)
        shape = ProductShape(self.n - row, self.n - row, self.wave, self.lanes)
        return self._product(space, kernel, grid, shape, (read, read._replace(write=1)), flops)

    def _trsm(self, space: Space, p: int, width: int) -> Launch:
        rest = self.n - p - width
        diagonal = self._part(space, p, p, 0, COLUMNS)
        u = self._part(space, p + width, p, 1, ROWS, along=True)
        parts = diagonal, u, u._replace(write=1)
        grid = TileGrid(rest, width, self.tile, width)
        shape = ProductShape(width, _CHUNK, self.wave, self.lanes)
        return self._product(space, "trsm", grid, shape, parts, float(width) ** 2 * rest)

    def _gemm(self, space: Space, p: int, width: int) -> Launch:
        rest = self.n - p - width
        operands = (
            self._part(space, p, p + width, 0, COLUMNS),
            self._part(space, p + width, p, 1, ROWS, along=True),
            self._part(space, p + width, p + width, 2, write=True),
        )
        grid = TileGrid(rest, rest, self.tile, self.tile)
        shape = ProductShape(width, _CHUNK, self.wave, self.lanes, added=True)
        return self._product(space, "gemm", grid, shape, operands, 2.0 * rest * rest * width)

    def _part(
        self, space: Space, row: int, column: int, site: int, *how: Any, **more: Any
    ) -> MatrixOperand:
        return operand(space, "A", self.n, site, *how, row=row, column=column, **more)

    def _product(
        self,
        space: Space,
        kernel: str,
        grid: TileGrid,
        shape: ProductShape,
        operands: Any,
        flops: float,
    ) -> Launch:
        flops, pages = flops / self.efficiency, space["A"].pages
        return product_launch(kernel, grid, shape, operands, _SLOTS, flops, pages)
