"""3DC: PolyBench's three-dimensional convolution, plane by plane."""

from __future__ import annotations

from collections.abc import Iterator
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


@workload("cppe-3DC")
class Convolution3D(Workload):
    """A convolution in three dimensions, ni × n × n floats: 3DCONV of PolyBench/GPU, thread blocks
    of 32 × 8.

    A launch for every i from 1 to ni - 2; k, j = blockIdx.x * 32 + threadIdx.x, blockIdx.y * 8 +
    threadIdx.y:

        B[i][j][k] = f(A[i±1][j-1][k-1], A[i±1][j-1…j+1][k+1], A[i][j-1…j+1][k])      where 0 < j, k < n - 1

    Operands: A is read, B is written; the first and the last plane of B are never touched and left
    out, so B begins with plane 1. Grid order: blockIdx.x fastest. References: 0 = A, 1 = B.
    PolyBench calls it once. Table II: 3DCONV, 127.5 MB, Type I; 256 planes of A and the 254 used of
    B, 256 × 256 each, make 127.5 MiB: the table counts what is touched.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        published_bytes("cppe", "cppe-3DC"),
        "size of what is touched of both",
        parse=units.size,
        least=1,
    )

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

    def launches(self, space: Space) -> Iterator[Launch]:
        count = across(self.n, TILE_X) * across(self.n, TILE_Y)
        for i in range(1, self.planes - 1):
            yield Launch("convolution3D", stream(space, _convolution, count, (self.n, i)))


@jit
def _convolution(log: Any, block: int, count: int, shape: Any) -> Any:
    n, i = shape
    tiles = across(n, TILE_X)
    while block < count and going(log):
        top, left = block // tiles * TILE_Y, block % tiles * TILE_X
        rows, columns = (
            (max(1, top), min(n - 1, top + TILE_Y)),
            (max(1, left), min(n - 1, left + TILE_X)),
        )
        if rows[0] < rows[1] and columns[0] < columns[1]:
            for plane in (i - 1, i + 1):
                at = plane * n
                rect(
                    log,
                    _A,
                    n,
                    (at + rows[0] - 1, at + rows[1] - 1),
                    (columns[0] - 1, columns[1] + 1),
                    False,
                )
                rect(
                    log,
                    _A,
                    n,
                    (at + rows[1] - 1, at + rows[1] + 1),
                    (columns[0] + 1, columns[1] + 1),
                    False,
                )
            rect(log, _A, n, (i * n + rows[0] - 1, i * n + rows[1] + 1), columns, False)
            rect(log, _B, n, ((i - 1) * n + rows[0], (i - 1) * n + rows[1]), columns, True)
        block += closed(log)
    return block
