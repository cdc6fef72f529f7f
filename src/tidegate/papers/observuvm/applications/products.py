"""MM, GMM, GMV, HEL, SRK and SR2: matrix products of CUDA samples, cuBLAS and HeCBench."""

from __future__ import annotations

from math import isqrt, sqrt

from tidegate.options import Option
from tidegate.workloads.matmul import MatMul
from tidegate.workloads.matrix_products import (
    BOTH,
    COLUMNS,
    ROWS,
    TILE_HELP,
    MatrixOperand,
    MatrixProduct,
    TileGrid,
    operand,
)
from tidegate.workloads.program import Launches, Space, SquareMatrices, efficiency_option, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import FLOAT
from tidegate.workloads.waves import WaveWorkload


@workload("MM")
class MM(MatMul):
    """C = A·B, n × n floats, row-major: ``matmul`` (matrixMul of the CUDA samples).

    Block (bx, by), thread (tx, ty), for k = 0, 32, 64, … < n:

        As[ty][tx] = A[(32 by + ty) n + k + tx]
        Bs[ty][tx] = B[(k + ty) n + 32 bx + tx]
        C[(32 by + ty) n + 32 bx + tx] = Σ As · Bs        after the last k

    Operands: A and C stream by rows of tiles; B is read once for every row of tiles. Grid order: bx
    fastest. Access sites: 0 = A, 1 = B, 2 = C. Table II: "Tiled matrix multiplication" of the CUDA
    samples, 10.1 GB.
    """

    bytes = published_footprint("MM", "size of the three matrices together")


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
