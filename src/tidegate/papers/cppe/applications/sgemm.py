"""SGM: Parboil's product of matrices; thread blocks walk through the depth of both operands."""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit
from tidegate.workloads.program import Derived, Launches, Space, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import FLOAT, blocks, launch_of, use_floats

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
        intensity = 2 * TILE_M * TILE_N * k / (FLOAT * (k * (TILE_M + TILE_N) + TILE_M * TILE_N))
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
            use_floats(log, _C, row + j * m, row + TILE_M + j * m, True)
