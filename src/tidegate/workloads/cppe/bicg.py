"""BIC: a matrix times two vectors, first down its columns, then along its rows."""

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

ARRAYS = ("A", "r", "s", "p", "q")


@workload("cppe-BIC")
class BICG(Workload):
    """s = Aᵀ·r, q = A·p, A n × n floats, row-major: BICG of PolyBench/GPU, 256 threads, a float of the result each.

        bicg_kernel1   for i:  s[j] += A[i n + j] * r[i]
        bicg_kernel2   for j:  q[i] += A[i n + j] * p[j]

    Steps and strides: see ``matvec``. Grid order: from the first float to the last. References: the arrays as they are
    allocated. Table II: BICG, 64.1 MB, Type III; n = 4096, PolyBench's size, makes 64.06 MiB.
    """

    provenance = Provenance.DERIVED
    bytes = Option(published_bytes("cppe", "cppe-BIC"), "size of the matrix and four vectors", parse=units.size, least=1)

    @property
    def n(self) -> int:
        """Rows and columns of the matrix: n² + 4 n floats fit."""
        return isqrt(self.bytes // FLOAT + 4) - 2

    def sizes(self) -> dict[str, int]:
        return dict(zip(ARRAYS, (FLOAT * self.n**2, *(4 * [FLOAT * self.n])), strict=True))

    def launches(self, space: Space) -> Iterator[Launch]:
        count = across(self.n, THREADS)
        yield Launch("bicg_kernel1", stream(space, by_columns, count, (self.n, 0, 1, 2)))
        yield Launch("bicg_kernel2", stream(space, by_rows, count, (self.n, 0, 3, 4)))
