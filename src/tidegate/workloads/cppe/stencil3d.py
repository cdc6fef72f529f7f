"""STN: Parboil's seven-point stencil; thread blocks go through the planes, iteration after
iteration.
"""

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

TILE_X, TILE_Y = 64, 4  # 32 × 4 threads, each two points


@workload("cppe-STN")
class Stencil3D(Workload):
    """A seven-point stencil on n × n × planes floats: stencil of Parboil
    (block2D_hybrid_coarsen_x), 32 × 4 threads.

        i, j = blockIdx.x * 64 + threadIdx.x (and + 32), blockIdx.y * 4 + threadIdx.y;  at = i + n (j + n k)
        load   A0[at] of k = 0, 1;  for k in 1 … planes - 2:
               A0[at + n²];  where 0 < i, j < n - 1:  A0[at ± n], A0[at ± 1] at the tile's edges, Anext[at] is written

    Operands: two arrays, which change places after every launch. Grid order: blockIdx.x fastest.
    References: 0, 1 = the arrays. Table II: stencil, 4 MB, Type IV; two of 128 × 128 × 32,
    Parboil's default input, make 4 MiB.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        published_bytes("cppe", "cppe-STN"),
        "size of both arrays together",
        parse=units.size,
        least=1,
    )
    iterations = Option(
        100, "iterations (a choice: 100, as Parboil's default input, from memory)", least=1
    )
    planes = Option(32, "planes (a choice: 32, as Parboil's default input)", least=3)

    @property
    def n(self) -> int:
        """Rows and columns of a plane."""
        return isqrt(self.bytes // (8 * self.planes))

    def sizes(self) -> dict[str, int]:
        return dict.fromkeys(("even", "odd"), 4 * self.planes * self.n**2)

    def launches(self, space: Space) -> Iterator[Launch]:
        count = across(self.n, TILE_X) * across(self.n, TILE_Y)
        for iteration in range(self.iterations):
            yield Launch(
                "block2D_hybrid_coarsen_x",
                stream(space, _stencil, count, (self.n, self.planes, iteration % 2)),
            )


@jit
def _stencil(log: Any, block: int, count: int, shape: Any) -> Any:
    n, planes, source = shape
    tiles = across(n, TILE_X)
    while block < count and going(log):
        top, left = block // tiles * TILE_Y, block % tiles * TILE_X
        bottom, right = min(n, top + TILE_Y), min(n, left + TILE_X)
        # where it stores
        rows, columns = (max(1, top), min(n - 1, bottom)), (max(1, left), min(n - 1, right))
        for k in range(planes):
            at = k * n
            rect(log, source, n, (at + top, at + bottom), (left, right), False)
            if 0 < k < planes - 1 and rows[0] < rows[1] and columns[0] < columns[1]:
                rect(log, source, n, (at + rows[0] - 1, at + top), columns, False)
                rect(log, source, n, (at + bottom, at + rows[1] + 1), columns, False)
                rect(log, source, n, (at + rows[0], at + rows[1]), (columns[0] - 1, left), False)
                rect(log, source, n, (at + rows[0], at + rows[1]), (right, columns[1] + 1), False)
                rect(log, 1 - source, n, (at + rows[0], at + rows[1]), columns, True)
        block += closed(log)
    return block
