"""STREAM's triad over managed vectors: bench_stream of SpecAsync-UVM."""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit
from tidegate.workloads.program import Derived, Launches, Space, footprint, workload
from tidegate.workloads.thread_blocks import FLOAT, across, blocks, launch_of, step, use_floats

_THREADS = 256
_MOST_BLOCKS = 65535  # of the benchmark's grid


@workload("triad")
class Triad(Derived):
    """C = A + s·B over vectors of floats, once, by a grid-stride loop.

        for (i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
            C[i] = A[i] + s * B[i]

    The grid has n / 256 thread blocks, at most 65,535. Access sites: 0 = A, 1 = B, 2 = C.
    """

    bytes = footprint("768MiB", "size of the three vectors together")

    def sizes(self) -> dict[str, int]:
        return dict.fromkeys("ABC", max(FLOAT, self.bytes // 12 * FLOAT))

    def launches(self, space: Space) -> Launches:
        n = space["A"].bytes // FLOAT
        count = min(_MOST_BLOCKS, -(-n // _THREADS))
        yield launch_of(space, "triad", _triad, count, (n, count))


@jit
def _triad(log: Any, count: int, shape: Any) -> None:
    n, grid = shape
    for block in blocks(log, count):
        for turn in range(across(n, grid * _THREADS)):
            low = (turn * grid + block) * _THREADS
            high = min(n, low + _THREADS)
            use_floats(log, 0, low, high, False)
            use_floats(log, 1, low, high, False)
            use_floats(log, 2, low, high, True)
            step(log)
