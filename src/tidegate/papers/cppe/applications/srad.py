"""SRD: speckles removed from a picture; two kernels walk six matrices in every iteration."""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.workloads.program import Launches, Space, SquareMatrices, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import across, blocks, launch_of, tile_of, use_rect

TILE = 16  # BLOCK_SIZE
_J, _C, _E, _W, _S, _N = range(6)


@workload("cppe-SRD")
class Srad(SquareMatrices):
    """Speckle-reducing anisotropic diffusion of an n × n picture of floats: srad_v2 of Rodinia.

    Thread blocks have 16 × 16 threads. At each point p of a tile (y n + x), with its neighbours n,
    s, w, e, clamped at the edges; two launches an iteration:

        srad_cuda_1   N, S, W, E[p] = J[n], J[s], J[w], J[e] - J[p];  C[p] = f(those, J[p])
        srad_cuda_2   J[p] += λ (C[p] N[p] + C[s] S[p] + C[p] W[p] + C[e] E[p])

    Operands: six matrices. Grid order: blockIdx.x fastest. Access sites: the matrices as they are
    allocated. The sums that the host takes of J between iterations are left out. Table II: srad_v2,
    96 MB, Type IV; six of 2048 × 2048 make 96 MiB.
    """

    arrays = ("J", "C", "E", "W", "S", "N")  # as srad.cu allocates them
    bytes = published_footprint("cppe-SRD", "size of the six matrices")
    iterations = Option(2, "iterations (a choice: 2, as in Rodinia's script)", least=1)

    def launches(self, space: Space) -> Launches:
        count = across(self.n, TILE) ** 2
        for _ in range(self.iterations):
            yield launch_of(space, "srad_cuda_1", _srad_1, count, (self.n,))
            yield launch_of(space, "srad_cuda_2", _srad_2, count, (self.n,))


@jit
def _srad_1(log: Any, count: int, shape: Any) -> None:
    n = shape[0]
    for block in blocks(log, count):
        rows, columns = tile_of(block, n, TILE, TILE)
        use_rect(log, _J, n, (max(0, rows[0] - 1), rows[0]), columns, False)
        use_rect(log, _J, n, rows, (columns[0] - 1, columns[1] + 1), False)
        use_rect(log, _J, n, (rows[1], min(n, rows[1] + 1)), columns, False)
        for array in (_C, _E, _W, _S, _N):
            use_rect(log, array, n, rows, columns, True)


@jit
def _srad_2(log: Any, count: int, shape: Any) -> None:
    n = shape[0]
    for block in blocks(log, count):
        rows, columns = tile_of(block, n, TILE, TILE)
        use_rect(log, _C, n, rows, (columns[0], columns[1] + 1), False)
        use_rect(log, _C, n, (rows[1], min(n, rows[1] + 1)), columns, False)
        for array in (_N, _S, _W, _E):
            use_rect(log, array, n, rows, columns, False)
        use_rect(log, _J, n, rows, columns, True)
