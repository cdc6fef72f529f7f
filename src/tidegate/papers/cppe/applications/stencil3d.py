"""STN: Parboil's seven-point stencil; thread blocks walk through the planes in every iteration."""

from __future__ import annotations

from math import isqrt
from typing import Any

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.workloads.program import Derived, Launches, Space, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import across, blocks, launch_of, tile_of, use_rect

TILE_X, TILE_Y = 64, 4  # 32 × 4 threads, each two points


@workload("cppe-STN")
class Stencil3D(Derived):
    """A seven-point stencil on n × n × planes floats: stencil of Parboil, 32 × 4 threads.

    The kernel is block2D_hybrid_coarsen_x:

        i, j = blockIdx.x * 64 + threadIdx.x (and + 32), blockIdx.y * 4 + threadIdx.y
        at = i + n (j + n k)
        load   A0[at] of k = 0, 1;  for k in 1 … planes - 2:
               A0[at + n²];  where 0 < i, j < n - 1:
                   A0[at ± n], A0[at ± 1] at the tile's edges, Anext[at] is written

    Operands: two arrays, which change places after every launch. Grid order: blockIdx.x fastest.
    Access sites: 0, 1 = the arrays. Table II: stencil, 4 MB, Type IV; two of 128 × 128 × 32,
    Parboil's default input, make 4 MiB.
    """

    bytes = published_footprint("cppe-STN", "size of both arrays together")
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

    def launches(self, space: Space) -> Launches:
        count = across(self.n, TILE_X) * across(self.n, TILE_Y)
        for iteration in range(self.iterations):
            shape = (self.n, self.planes, iteration % 2)
            yield launch_of(space, "block2D_hybrid_coarsen_x", _stencil, count, shape)


@jit
def _stencil(log: Any, count: int, shape: Any) -> None:
    n, planes, source = shape
    for block in blocks(log, count):
        (top, bottom), columns = tile_of(block, n, TILE_X, TILE_Y)
        (first, last), stored = tile_of(block, n, TILE_X, TILE_Y, 1)
        left, right = columns
        for k in range(planes):
            at = k * n
            use_rect(log, source, n, (at + top, at + bottom), columns, False)
            if 0 < k < planes - 1 and first < last and stored[0] < stored[1]:
                now = at + first, at + last
                use_rect(log, source, n, (at + first - 1, at + top), stored, False)
                use_rect(log, source, n, (at + bottom, at + last + 1), stored, False)
                use_rect(log, source, n, now, (stored[0] - 1, left), False)
                use_rect(log, source, n, now, (right, stored[1] + 1), False)
                use_rect(log, 1 - source, n, now, stored, True)
