"""MRQ and SGM: Parboil's programs that compute much for each byte."""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.workloads.program import Derived, Launches, Space, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import (
    FLOAT,
    across,
    blocks,
    change,
    launch_of,
    step,
    use_floats,
)

THREADS, PHI_THREADS = 256, 512
PIECE = 1024  # KERNEL_Q_K_ELEMS_PER_GRID: samples of k-space in a launch
# per point and sample: three products and sums, sine and cosine counted as one each, two products
# and sums
_FLOPS = 14
ARRAYS = ("phiR", "phiI", "phiMag", "x", "y", "z", "Qr", "Qi")
_PHI = 0, 2, 3  # the first array, the first that is written, the end
_Q = 3, 6, 8


@workload("cppe-MRQ")
class MRIQ(Derived):
    """Q of a non-Cartesian MRI reconstruction: mri-q of Parboil.

    A thread is a sample (phiMag) or a point (Q).

        ComputePhiMag_GPU   phiMag[k] = phiR[k]² + phiI[k]²                             512 threads
        ComputeQ_GPU        Qr[i], Qi[i] += Σ over 1024 samples of f(x[i], y[i], z[i])  256 threads

    ComputeQ is launched once for each 1024 samples, which are constants. It reads its point and its
    two sums, runs through the samples, and then writes the sums back. Grid order: from the first
    point to the last. Access sites: the arrays as they are allocated. Table II: mri-q, 5 MB, Type
    IV; the 64 × 64 × 64 points of Parboil's large input make 5.0 MiB.
    """

    bytes = published_footprint("cppe-MRQ", "size of the eight arrays")
    samples = Option(
        2048, "samples of k-space (a choice: 2048, as Parboil's large input, from memory)", least=1
    )

    @property
    def points(self) -> int:
        return max(1, (self.bytes // FLOAT - 3 * self.samples) // 5)

    def sizes(self) -> dict[str, int]:
        points, samples = FLOAT * self.points, FLOAT * self.samples
        return dict.fromkeys(ARRAYS[:3], samples) | dict.fromkeys(ARRAYS[3:], points)

    def launches(self, space: Space) -> Launches:
        n, count = self.samples, across(self.samples, PHI_THREADS)
        shape = (n, PHI_THREADS, _PHI)
        yield launch_of(space, "ComputePhiMag_GPU", _elementwise, count, shape)
        for done in range(0, n, PIECE):
            intensity = _FLOPS * min(PIECE, n - done) / (7 * FLOAT)  # three read, two also written
            count, shape = across(self.points, THREADS), (self.points, THREADS, _Q)
            yield launch_of(space, "ComputeQ_GPU", _sums, count, shape, intensity)


@jit
def _elementwise(log: Any, count: int, shape: Any) -> None:
    n, threads, (first, written, end) = shape
    for block in blocks(log, count):
        low, high = threads * block, min(n, threads * (block + 1))
        for array in range(first, end):
            use_floats(log, array, low, high, array >= written)


@jit
def _sums(log: Any, count: int, shape: Any) -> None:
    n, threads, (first, written, end) = shape
    for block in blocks(log, count):
        low, high = threads * block, min(n, threads * (block + 1))
        for array in range(first, end):
            use_floats(log, array, low, high, False)
        step(log)  # the loop over the samples
        for array in range(written, end):
            use_floats(log, array, low, high, True)


TILE_M, TILE_N, CHUNK = 128, 16, 8  # rows and columns of C per thread block; depth in a step
_A, _B, _C = range(3)
_M, _N, _BYTES = 1024, 1056, 12_578_816  # of Parboil's medium input, whose depth is 992


@workload("cppe-SGM")
class Sgemm(Derived):
    """C = A·Bᵀ, A m × k and B n × k, column-major floats: mysgemmNT of Parboil's sgemm.

    128 threads for 128 × 16 of C:

        for i in 0, 8, … < k:  B[16 by + tx + (i + ty) n]
                               A[128 bx + 16 ty + tx + (i + j) m],  j = 0 … 7
        C[128 bx + 16 ty + tx + (16 by + j) m] is read and written,  j = 0 … 15

    Grid order: blockIdx.x (the rows of C) fastest. Access sites: 0 = A, 1 = B, 2 = C. Table II:
    sgemm, 12 MB, Type V; Parboil's medium input, 1024 × 992 and 992 × 1056, makes 12.0 MiB.
    """

    bytes = published_footprint("cppe-SGM", "size of the three matrices")

    @property
    def shape(self) -> tuple[int, int, int]:
        """m, n and k: whole tiles, as Parboil requires, in the medium input's ratio.

        k takes the remaining bytes.
        """
        scale = (self.bytes / _BYTES) ** 0.5
        m = TILE_M * max(1, round(_M / TILE_M * scale))
        n = TILE_N * max(1, round(_N / TILE_N * scale))
        return m, n, max(1, (self.bytes // FLOAT - m * n) // (m + n))

    def sizes(self) -> dict[str, int]:
        m, n, k = self.shape
        return {"A": FLOAT * m * k, "B": FLOAT * n * k, "C": FLOAT * m * n}

    def launches(self, space: Space) -> Launches:
        m, n, k = self.shape
        intensity = (
            2 * TILE_M * TILE_N * k / (FLOAT * (k * (TILE_M + TILE_N) + 2 * TILE_M * TILE_N))
        )
        count = m // TILE_M * (n // TILE_N)
        yield launch_of(space, "mysgemmNT", _sgemm, count, (m, n, k), intensity)


@jit
def _sgemm(log: Any, count: int, shape: Any) -> None:
    m, n, k = shape
    for block in blocks(log, count):
        row, column = block % (m // TILE_M) * TILE_M, block // (m // TILE_M) * TILE_N
        for i in range(0, k, CHUNK):
            for depth in range(i, min(k, i + CHUNK)):
                use_floats(log, _B, column + depth * n, column + TILE_N + depth * n, False)
            for depth in range(i, min(k, i + CHUNK)):
                use_floats(log, _A, row + depth * m, row + TILE_M + depth * m, False)
        for j in range(column, column + TILE_N):
            change(log, _C, FLOAT * (row + j * m), FLOAT * (row + TILE_M + j * m))
