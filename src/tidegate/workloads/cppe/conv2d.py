"""2DC: PolyBench's two-dimensional convolution, once."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt
from typing import Any

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.cppe.kernel import across, closed, going, rect, stream
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.suites import published_bytes

TILE_X, TILE_Y = 32, 8
_A, _B = range(2)


@workload("cppe-2DC")
class Convolution2D(Workload):
    """A convolution with 3 × 3 weights, n × n floats, row-major: 2DCONV of PolyBench/GPU, thread
    blocks of 32 × 8.

        j, i = blockIdx.x * 32 + threadIdx.x, blockIdx.y * 8 + threadIdx.y
        B[i n + j] = Σ c[p][q] * A[(i + p) n + j + q],  p, q = -1, 0, 1          where 0 < i, j < n - 1

    Operands: A is read, B is written. Grid order: blockIdx.x fastest. References: 0 = A, 1 = B.
    PolyBench calls it once. Table II: 2DCONV, 128 MB, Type I; two matrices of 4096 × 4096 make 128
    MiB.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        published_bytes("cppe", "cppe-2DC"),
        "size of both matrices together",
        parse=units.size,
        least=1,
    )

    @property
    def n(self) -> int:
        """Rows and columns of a matrix; fewer than three have nothing inside."""
        n = isqrt(self.bytes // 8)
        return n if n > 2 else 0

    def sizes(self) -> dict[str, int]:
        return {"A": 4 * self.n**2, "B": 4 * self.n**2}

    def launches(self, space: Space) -> Iterator[Launch]:
        count = across(self.n, TILE_X) * across(self.n, TILE_Y)
        yield Launch("convolution2D", stream(space, _convolution, count, (self.n,)))


@jit
def _convolution(log: Any, block: int, count: int, shape: Any) -> Any:
    n = shape[0]
    tiles = across(n, TILE_X)
    while block < count and going(log):
        top, left = block // tiles * TILE_Y, block % tiles * TILE_X
        rows, columns = (
            (max(1, top), min(n - 1, top + TILE_Y)),
            (max(1, left), min(n - 1, left + TILE_X)),
        )
        if rows[0] < rows[1] and columns[0] < columns[1]:
            rect(log, _A, n, (rows[0] - 1, rows[1] + 1), (columns[0] - 1, columns[1] + 1), False)
            rect(log, _B, n, rows, columns, True)
        block += closed(log)
    return block
