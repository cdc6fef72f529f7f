"""2DC and 3DC: PolyBench's convolutions, in two dimensions and plane by plane in three."""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit
from tidegate.workloads.program import Derived, Launches, Space, SquareMatrices, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import across, blocks, launch_of, tile_of, use_rect

TILE_X, TILE_Y = 32, 8  # the thread block of PolyBench/GPU's 2DCONV
_A, _B = range(2)


@workload("cppe-2DC")
class Convolution2D(SquareMatrices):
    """A convolution with 3 × 3 weights, n × n floats, row-major: 2DCONV of PolyBench/GPU.

    Thread blocks have 32 × 8 threads.

        j, i = blockIdx.x * 32 + threadIdx.x, blockIdx.y * 8 + threadIdx.y
        B[i n + j] = Σ c[p][q] * A[(i + p) n + j + q],  p, q = -1, 0, 1      where 0 < i, j < n - 1

    Operands: A is read, B is written. Grid order: blockIdx.x fastest. Access sites: 0 = A, 1 = B.
    PolyBench calls it once. Table II: 2DCONV, 128 MB, Type I; two matrices of 4096 × 4096 make 128
    MiB.
    """

    arrays = ("A", "B")
    bytes = published_footprint("cppe-2DC", "size of both matrices together")

    @property
    def n(self) -> int:
        """Rows and columns of a matrix; fewer than three have nothing inside."""
        return super().n if super().n > 2 else 0

    def launches(self, space: Space) -> Launches:
        count = across(self.n, TILE_X) * across(self.n, TILE_Y)
        yield launch_of(space, "convolution2D", _convolution, count, (self.n,))


@jit
def _convolution(log: Any, count: int, shape: Any) -> None:
    n = shape[0]
    for block in blocks(log, count):
        (top, bottom), (left, right) = tile_of(block, n, TILE_X, TILE_Y, 1)
        if top < bottom and left < right:
            use_rect(log, _A, n, (top - 1, bottom + 1), (left - 1, right + 1), False)
            use_rect(log, _B, n, (top, bottom), (left, right), True)


@workload("cppe-3DC")
class Convolution3D(Derived):
    """A convolution in three dimensions, ni × n × n floats: 3DCONV of PolyBench/GPU.

    Thread blocks have 32 × 8 threads. A launch for every i from 1 to ni - 2; k, j = blockIdx.x * 32
    + threadIdx.x, blockIdx.y * 8 + threadIdx.y:

        B[i][j][k] = f(A[i±1][j-1][k-1], A[i±1][j-1…j+1][k+1], A[i][j-1…j+1][k])
                                                                        where 0 < j, k < n - 1

    Operands: A is read, B is written; the first and the last plane of B are never touched and left
    out, so B begins with plane 1. Grid order: blockIdx.x fastest. Access sites: 0 = A, 1 = B.
    PolyBench calls it once. Table II: 3DCONV, 127.5 MB, Type I; 256 planes of A and the 254 used of
    B, 256 × 256 each, make 127.5 MiB: the table counts what is touched.
    """

    bytes = published_footprint("cppe-3DC", "size of what is touched of both")

    @property
    def n(self) -> int:
        """Rows and columns of a plane."""
        return max(3, round((self.bytes / 8) ** (1 / 3)))

    @property
    def planes(self) -> int:
        """Planes of A: at least three, or there is nothing inside."""
        return max(3, (self.bytes // (4 * self.n**2) + 2) // 2)

    def sizes(self) -> dict[str, int]:
        return {"A": 4 * self.n**2 * self.planes, "B": 4 * self.n**2 * (self.planes - 2)}

    def launches(self, space: Space) -> Launches:
        count = across(self.n, TILE_X) * across(self.n, TILE_Y)
        for i in range(1, self.planes - 1):
            yield launch_of(space, "convolution3D", _convolution_3d, count, (self.n, i))


@jit
def _convolution_3d(log: Any, count: int, shape: Any) -> None:
    n, i = shape
    for block in blocks(log, count):
        (top, bottom), (left, right) = tile_of(block, n, TILE_X, TILE_Y, 1)
        if top < bottom and left < right:
            for plane in (i - 1, i + 1):
                first, last = plane * n + top - 1, plane * n + bottom - 1
                use_rect(log, _A, n, (first, last), (left - 1, right + 1), False)
                use_rect(log, _A, n, (last, last + 2), (left + 1, right + 1), False)
            use_rect(log, _A, n, (i * n + top - 1, i * n + bottom + 1), (left, right), False)
            below = (i - 1) * n
            use_rect(log, _B, n, (below + top, below + bottom), (left, right), True)
