"""MVT: a matrix times two vectors, first along its rows, then down its columns."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

from tidegate import units
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.cppe.kernel import FLOAT, across, stream
from tidegate.workloads.cppe.matvec import THREADS, by_columns, by_rows
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.suites import published_bytes

ARRAYS = ("a", "x1", "x2", "y1", "y2")


@workload("cppe-MVT")
class MVT(Workload):
    """x1 += A·y1, x2 += Aᵀ·y2, A n × n floats, row-major: MVT of PolyBench/GPU, 256 threads, a float of x each.

        mvt_kernel1   for j:  x1[i] += a[i n + j] * y1[j]
        mvt_kernel2   for j:  x2[i] += a[j n + i] * y2[j]

    Steps and strides: see ``matvec``. Grid order: from the first float to the last. References: the arrays as they are
    allocated. Table II: MVT, 64.1 MB, Type III; n = 4096, PolyBench's size, makes 64.06 MiB.
    """

    provenance = Provenance.DERIVED
    bytes = Option(published_bytes("cppe", "cppe-MVT"), "size of the matrix and four vectors", parse=units.size, least=1)

    @property
    def n(self) -> int:
        """Rows and columns of the matrix: n² + 4 n floats fit."""
        return isqrt(self.bytes // FLOAT + 4) - 2

    def sizes(self) -> dict[str, int]:
        return dict(zip(ARRAYS, (FLOAT * self.n**2, *(4 * [FLOAT * self.n])), strict=True))

    def launches(self, space: Space) -> Iterator[Launch]:
        count = across(self.n, THREADS)
        yield Launch("mvt_kernel1", stream(space, by_rows, count, (self.n, 0, 3, 1)))
        yield Launch("mvt_kernel2", stream(space, by_columns, count, (self.n, 0, 4, 2)))
