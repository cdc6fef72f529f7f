"""MRQ: a magnetic resonance picture's Q matrix; points stream once for every piece of k-space."""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.workloads.program import Derived, Launches, Space, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import FLOAT, across, blocks, launch_of, step, use_floats

THREADS, PHI_THREADS = 256, 512
PIECE = 1024  # KERNEL_Q_K_ELEMS_PER_GRID: samples of k-space in a launch
# per point and sample: three products and sums, sine and cosine counted as one each, two products
# and sums
_FLOPS = 14
ARRAYS = ("phiR", "phiI", "phiMag", "x", "y", "z", "Qr", "Qi")
_PHI = 0, 2, 3  # the first array, the first that is written, the end
_Q = 3, 6, 8


@workload("cppe-MRQ")
class MRIQ(Derived):
    """Q of a non-Cartesian MRI reconstruction: mri-q of Parboil.

    A thread is a sample (phiMag) or a point (Q).

        ComputePhiMag_GPU   phiMag[k] = phiR[k]² + phiI[k]²                             512 threads
        ComputeQ_GPU        Qr[i], Qi[i] += Σ over 1024 samples of f(x[i], y[i], z[i])  256 threads

    ComputeQ is launched once for each 1024 samples, which are constants. It reads its point and its
    two sums, runs through the samples, and then writes the sums back. Grid order: from the first
    point to the last. Access sites: the arrays as they are allocated. Table II: mri-q, 5 MB, Type
    IV; the 64 × 64 × 64 points of Parboil's large input make 5.0 MiB.
    """

    bytes = published_footprint("cppe-MRQ", "size of the eight arrays")
    samples = Option(
        2048, "samples of k-space (a choice: 2048, as Parboil's large input, from memory)", least=1
    )

    @property
    def points(self) -> int:
        return max(1, (self.bytes // FLOAT - 3 * self.samples) // 5)

    def sizes(self) -> dict[str, int]:
        points, samples = FLOAT * self.points, FLOAT * self.samples
        return dict.fromkeys(ARRAYS[:3], samples) | dict.fromkeys(ARRAYS[3:], points)

    def launches(self, space: Space) -> Launches:
        n, count = self.samples, across(self.samples, PHI_THREADS)
        shape = (n, PHI_THREADS, _PHI)
        yield launch_of(space, "ComputePhiMag_GPU", _elementwise, count, shape)
        for done in range(0, n, PIECE):
            intensity = _FLOPS * min(PIECE, n - done) / (7 * FLOAT)  # three read, two also written
            count, shape = across(self.points, THREADS), (self.points, THREADS, _Q)
            yield launch_of(space, "ComputeQ_GPU", _sums, count, shape, intensity)


@jit
def _elementwise(log: Any, count: int, shape: Any) -> None:
    n, threads, (first, written, end) = shape
    for block in blocks(log, count):
        low, high = threads * block, min(n, threads * (block + 1))
        for array in range(first, end):
            use_floats(log, array, low, high, array >= written)


@jit
def _sums(log: Any, count: int, shape: Any) -> None:
    n, threads, (first, written, end) = shape
    for block in blocks(log, count):
        low, high = threads * block, min(n, threads * (block + 1))
        for array in range(first, end):
            use_floats(log, array, low, high, False)
        step(log)  # the loop over the samples
        for array in range(written, end):
            use_floats(log, array, low, high, True)
