"""BIC: a matrix times two vectors, first down its columns, then along its rows."""

from __future__ import annotations

from tidegate import units
from tidegate.options import Option
from tidegate.workloads.cppe.matvec import MatrixAndVectors, by_columns, by_rows
from tidegate.workloads.program import workload
from tidegate.workloads.suites import published_bytes


@workload("cppe-BIC")
class BICG(MatrixAndVectors):
    """s = Aᵀ·r, q = A·p, A n × n floats, row-major: BICG of PolyBench/GPU, 256 threads, a float of
    the result each.

        bicg_kernel1   for i:  s[j] += A[i n + j] * r[i]
        bicg_kernel2   for j:  q[i] += A[i n + j] * p[j]

    Steps and strides: see ``matvec``. Grid order: from the first float to the last. References: the
    arrays as they are allocated. Table II: BICG, 64.1 MB, Type III; n = 4096, PolyBench's size,
    makes 64.06 MiB.
    """

    bytes = Option(
        published_bytes("cppe", "cppe-BIC"),
        "size of the matrix and four vectors",
        parse=units.size,
        least=1,
    )
    arrays = ("A", "r", "s", "p", "q")
    kernels = (("bicg_kernel1", by_columns, 1, 2), ("bicg_kernel2", by_rows, 3, 4))
