"""SGM: Parboil's product of matrices; every thread block goes through the whole depth of both
operands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.cppe.kernel import FLOAT, closed, going, stream, use
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.suites import published_bytes

TILE_M, TILE_N, CHUNK = 128, 16, 8  # rows and columns of C per thread block; depth in a step
_A, _B, _C = range(3)
_M, _N, _BYTES = 1024, 1056, 12_578_816  # of Parboil's medium input, whose depth is 992


@workload("cppe-SGM")
class Sgemm(Workload):
    """C = A·Bᵀ, A m × k and B n × k, all column-major floats: mysgemmNT of Parboil's sgemm, 128
    threads for 128 × 16 of C.

        for i in 0, 8, … < k:  B[16 by + tx + (i + ty) n];  A[128 bx + 16 ty + tx + (i + j) m],  j = 0 … 7
        C[128 bx + 16 ty + tx + (16 by + j) m] is read and written,  j = 0 … 15

    Grid order: blockIdx.x (the rows of C) fastest. References: 0 = A, 1 = B, 2 = C. Table II:
    sgemm, 12 MB, Type V; Parboil's medium input, 1024 × 992 and 992 × 1056, makes 12.0 MiB.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        published_bytes("cppe", "cppe-SGM"), "size of the three matrices", parse=units.size, least=1
    )

    @property
    def shape(self) -> tuple[int, int, int]:
        """m, n and k: whole tiles, as Parboil demands, in the medium input's ratio; k takes the
        rest.
        """
        scale = (self.bytes / _BYTES) ** 0.5
        m, n = (
            TILE_M * max(1, round(_M / TILE_M * scale)),
            TILE_N * max(1, round(_N / TILE_N * scale)),
        )
        return m, n, max(1, (self.bytes // FLOAT - m * n) // (m + n))

    def sizes(self) -> dict[str, int]:
        m, n, k = self.shape
        return {"A": FLOAT * m * k, "B": FLOAT * n * k, "C": FLOAT * m * n}

    def launches(self, space: Space) -> Iterator[Launch]:
        m, n, k = self.shape
        intensity = 2 * TILE_M * TILE_N * k / (FLOAT * (k * (TILE_M + TILE_N) + TILE_M * TILE_N))
        count = m // TILE_M * (n // TILE_N)
        yield Launch("mysgemmNT", stream(space, _sgemm, count, (m, n, k)), intensity=intensity)


@jit
def _sgemm(log: Any, block: int, count: int, shape: Any) -> Any:
    m, n, k = shape
    while block < count and going(log):
        row, column = block % (m // TILE_M) * TILE_M, block // (m // TILE_M) * TILE_N
        for i in range(0, k, CHUNK):
            for depth in range(i, min(k, i + CHUNK)):
                use(
                    log,
                    _B,
                    FLOAT * (column + depth * n),
                    FLOAT * (column + TILE_N + depth * n),
                    False,
                )
            for depth in range(i, min(k, i + CHUNK)):
                use(log, _A, FLOAT * (row + depth * m), FLOAT * (row + TILE_M + depth * m), False)
        for j in range(column, column + TILE_N):
            use(log, _C, FLOAT * (row + j * m), FLOAT * (row + TILE_M + j * m), True)
        block += closed(log)
    return block
