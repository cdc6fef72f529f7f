"""SRD: speckles taken out of a picture; two kernels walk six matrices, iteration after iteration."""

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

TILE = 16  # BLOCK_SIZE
ARRAYS = ("J", "C", "E", "W", "S", "N")  # as srad.cu allocates them
_J, _C, _E, _W, _S, _N = range(6)


@workload("cppe-SRD")
class Srad(Workload):
    """Speckle-reducing anisotropic diffusion of an n × n picture of floats: srad_v2 of Rodinia,
    thread blocks of 16 × 16.

    At each point p of a tile (y n + x), with its neighbours n, s, w, e, clamped at the edges; two
    launches an iteration:

        srad_cuda_1   N, S, W, E[p] = J[n], J[s], J[w], J[e] - J[p];  C[p] = f(those, J[p])
        srad_cuda_2   J[p] += λ (C[p] N[p] + C[s] S[p] + C[p] W[p] + C[e] E[p])

    Operands: six matrices. Grid order: blockIdx.x fastest. References: the matrices as they are
    allocated. The sums that the host takes of J between iterations are left out. Table II: srad_v2,
    96 MB, Type IV; six of 2048 × 2048 make 96 MiB.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        published_bytes("cppe", "cppe-SRD"), "size of the six matrices", parse=units.size, least=1
    )
    iterations = Option(2, "iterations (a choice: 2, as Rodinia's script)", least=1)

    @property
    def n(self) -> int:
        """Rows and columns of a matrix."""
        return isqrt(self.bytes // 24)

    def sizes(self) -> dict[str, int]:
        return dict.fromkeys(ARRAYS, 4 * self.n**2)

    def launches(self, space: Space) -> Iterator[Launch]:
        count = across(self.n, TILE) ** 2
        for _ in range(self.iterations):
            yield Launch("srad_cuda_1", stream(space, _srad_1, count, (self.n,)))
            yield Launch("srad_cuda_2", stream(space, _srad_2, count, (self.n,)))


@jit
def _tile(n: int, block: int) -> Any:
    tiles = across(n, TILE)
    top, left = block // tiles * TILE, block % tiles * TILE
    return (top, min(n, top + TILE)), (left, min(n, left + TILE))


@jit
def _srad_1(log: Any, block: int, count: int, shape: Any) -> Any:
    n = shape[0]
    while block < count and going(log):
        rows, columns = _tile(n, block)
        rect(log, _J, n, (max(0, rows[0] - 1), rows[0]), columns, False)
        rect(log, _J, n, rows, (columns[0] - 1, columns[1] + 1), False)
        rect(log, _J, n, (rows[1], min(n, rows[1] + 1)), columns, False)
        for array in (_C, _E, _W, _S, _N):
            rect(log, array, n, rows, columns, True)
        block += closed(log)
    return block


@jit
def _srad_2(log: Any, block: int, count: int, shape: Any) -> Any:
    n = shape[0]
    while block < count and going(log):
        rows, columns = _tile(n, block)
        rect(log, _C, n, rows, (columns[0], columns[1] + 1), False)
        rect(log, _C, n, (rows[1], min(n, rows[1] + 1)), columns, False)
        for array in (_N, _S, _W, _E):
            rect(log, array, n, rows, columns, False)
        rect(log, _J, n, rows, columns, True)
        block += closed(log)
    return block
