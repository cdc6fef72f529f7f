"""MRQ: a magnetic resonance picture's Q matrix; the points stream once for every piece of k-space."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.cppe.kernel import FLOAT, across, closed, going, stream, use
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.suites import published_bytes

THREADS, PHI_THREADS = 256, 512
PIECE = 1024  # KERNEL_Q_K_ELEMS_PER_GRID: samples of k-space in a launch
# per point and sample: three products and sums, sine and cosine counted as one each, two products
# and sums
_FLOPS = 14
ARRAYS = ("phiR", "phiI", "phiMag", "x", "y", "z", "Qr", "Qi")
_PHI, _X, _QR = 0, 3, 6


@workload("cppe-MRQ")
class MRIQ(Workload):
    """Q of a non-Cartesian MRI reconstruction: mri-q of Parboil; a thread is a sample (phiMag) or a
    point (Q).

        ComputePhiMag_GPU   phiMag[k] = phiR[k]² + phiI[k]²                                        512 threads
        ComputeQ_GPU        Qr[i], Qi[i] += Σ over 1024 samples of f(x[i], y[i], z[i])             256 threads

    ComputeQ is launched once for each 1024 samples, which are constants. Grid order: from the first
    point to the last. References: the arrays as they are allocated. Table II: mri-q, 5 MB, Type IV;
    the 64 × 64 × 64 points of Parboil's large input make 5.0 MiB.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        published_bytes("cppe", "cppe-MRQ"), "size of the eight arrays", parse=units.size, least=1
    )
    samples = Option(
        2048, "samples of k-space (a choice: 2048, as Parboil's large input, from memory)", least=1
    )

    @property
    def points(self) -> int:
        return max(1, (self.bytes // FLOAT - 3 * self.samples) // 5)

    def sizes(self) -> dict[str, int]:
        return dict(
            zip(ARRAYS, (*(3 * [FLOAT * self.samples]), *(5 * [FLOAT * self.points])), strict=True)
        )

    def launches(self, space: Space) -> Iterator[Launch]:
        yield Launch(
            "ComputePhiMag_GPU",
            stream(space, _phi, across(self.samples, PHI_THREADS), (self.samples,)),
        )
        for done in range(0, self.samples, PIECE):
            intensity = _FLOPS * min(PIECE, self.samples - done) / (5 * FLOAT)
            touches = stream(space, _q, across(self.points, THREADS), (self.points,))
            yield Launch("ComputeQ_GPU", touches, intensity=intensity)


@jit
def _phi(log: Any, block: int, count: int, shape: Any) -> Any:
    samples = shape[0]
    while block < count and going(log):
        low, high = PHI_THREADS * block, min(samples, PHI_THREADS * (block + 1))
        for array in range(3):
            use(log, _PHI + array, FLOAT * low, FLOAT * high, array == 2)
        block += closed(log)
    return block


@jit
def _q(log: Any, block: int, count: int, shape: Any) -> Any:
    points = shape[0]
    while block < count and going(log):
        low, high = THREADS * block, min(points, THREADS * (block + 1))
        for array in range(5):
            use(log, _X + array, FLOAT * low, FLOAT * high, _X + array >= _QR)
        block += closed(log)
    return block
