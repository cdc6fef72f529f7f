"""SRD: speckles removed from a picture; two kernels walk six matrices in every iteration."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt
from typing import Any

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch
from tidegate.workloads.program import Derived, Space, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import (
    across,
    end_block,
    has_room,
    kernel_launch,
    tile_of,
    use_rect,
)

TILE = 16  # BLOCK_SIZE
ARRAYS = ("J", "C", "E", "W", "S", "N")  # as srad.cu allocates them
_J, _C, _E, _W, _S, _N = range(6)


@workload("cppe-SRD")
class Srad(Derived):
    """Speckle-reducing anisotropic diffusion of an n × n picture of floats: srad_v2 of Rodinia.

    Thread blocks have 16 × 16 threads. At each point p of a tile (y n + x), with its neighbours n,
    s, w, e, clamped at the edges; two launches an iteration:

        srad_cuda_1   N, S, W, E[p] = J[n], J[s], J[w], J[e] - J[p];  C[p] = f(those, J[p])
        srad_cuda_2   J[p] += λ (C[p] N[p] + C[s] S[p] + C[p] W[p] + C[e] E[p])

    Operands: six matrices. Grid order: blockIdx.x fastest. Access sites: the matrices as they are
    allocated. The sums that the host takes of J between iterations are left out. Table II: srad_v2,
    96 MB, Type IV; six of 2048 × 2048 make 96 MiB.
    """

    bytes = published_footprint("cppe-SRD", "size of the six matrices")
    iterations = Option(2, "iterations (a choice: 2, as in Rodinia's script)", least=1)

    @property
    def n(self) -> int:
        """Rows and columns of a matrix."""
        return isqrt(self.bytes // 24)

    def sizes(self) -> dict[str, int]:
        return dict.fromkeys(ARRAYS, 4 * self.n**2)

    def launches(self, space: Space) -> Iterator[Launch]:
        count = across(self.n, TILE) ** 2
        for _ in range(self.iterations):
            yield kernel_launch(space, "srad_cuda_1", _srad_1, count, (self.n,))
            yield kernel_launch(space, "srad_cuda_2", _srad_2, count, (self.n,))


@jit
def _srad_1(log: Any, block: int, count: int, shape: Any) -> Any:
    n = shape[0]
    while block < count and has_room(log):
        rows, columns = tile_of(block, n, TILE, TILE)
        use_rect(log, _J, n, (max(0, rows[0] - 1), rows[0]), columns, False)
        use_rect(log, _J, n, rows, (columns[0] - 1, columns[1] + 1), False)
        use_rect(log, _J, n, (rows[1], min(n, rows[1] + 1)), columns, False)
        for array in (_C, _E, _W, _S, _N):
            use_rect(log, array, n, rows, columns, True)
        block += end_block(log)
    return block


@jit
def _srad_2(log: Any, block: int, count: int, shape: Any) -> Any:
    n = shape[0]
    while block < count and has_room(log):
        rows, columns = tile_of(block, n, TILE, TILE)
        use_rect(log, _C, n, rows, (columns[0], columns[1] + 1), False)
        use_rect(log, _C, n, (rows[1], min(n, rows[1] + 1)), columns, False)
        for array in (_N, _S, _W, _E):
            use_rect(log, array, n, rows, columns, False)
        use_rect(log, _J, n, rows, columns, True)
        block += end_block(log)
    return block
