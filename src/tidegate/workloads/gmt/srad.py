"""Srad: speckles taken out of a picture; two kernels walk through six matrices, iteration after
iteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

from tidegate import units
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.gmt.visits import lockstep, whole, width
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.suites import published_bytes

ARRAYS = ("J", "C", "E", "W", "S", "N")  # as srad.cu allocates them
_THREAD_BLOCK = 16 * 16 * 4  # bytes of each matrix


@workload("gmt-Srad")
class Srad(Workload):
    """Speckle-reducing anisotropic diffusion of an n × n picture of floats: srad_v2 of Rodinia,
    thread blocks of 16 × 16.

    At each point p of a tile, with its neighbours n, s, w, e; two launches an iteration:

        srad_cuda_1   N, S, W, E[p] = J[n], J[s], J[w], J[e] - J[p];  C[p] = f(those, J[p])
        srad_cuda_2   J[p] += λ (C[p] N[p] + C[s] S[p] + C[p] W[p] + C[e] E[p])

    Operands: six matrices. Grid order: from the first row to the last; halos make no visits (see
    ``visits``). References: the matrices as they are allocated. Table 2: reuse 83.38 %, I/O 270 GB.
    Three iterations visit a page 6 times, 83.33 %; the footprint is then 45 GB. That is less than
    the tiers' 80 GB, although 3.1 says all applications have twice as much.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        published_bytes("gmt", "gmt-Srad"), "size of the six matrices", parse=units.size, least=1
    )
    iterations = Option(3, "iterations (a choice: 3, from Table 2's 83.38 %)", least=1)

    @property
    def n(self) -> int:
        """Rows and columns of a matrix."""
        return isqrt(self.bytes // 24)

    def sizes(self) -> dict[str, int]:
        return dict.fromkeys(ARRAYS, 4 * self.n**2)

    def launches(self, space: Space) -> Iterator[Launch]:
        merged = width(space, _THREAD_BLOCK)
        for _ in range(self.iterations):
            yield Launch(
                "srad_cuda_1",
                lockstep(space, whole(space, ["J"], ["C", "E", "W", "S", "N"])),
                merged,
            )
            yield Launch(
                "srad_cuda_2",
                lockstep(space, whole(space, ["C", "N", "S", "W", "E"], ["J"])),
                merged,
            )
