"""BIC: a matrix times two vectors, first down its columns, then along its rows."""

from __future__ import annotations

from tidegate.papers.cppe.applications.matvec import MatrixAndVectors
from tidegate.workloads.program import workload
from tidegate.workloads.suites import published_footprint


@workload("cppe-BIC")
class BICG(MatrixAndVectors):
    """s = Aᵀ·r, q = A·p, A n × n floats, row-major: BICG of PolyBench/GPU, 256 threads.

        bicg_kernel1   for i:  s[j] += A[i n + j] * r[i]
        bicg_kernel2   for j:  q[i] += A[i n + j] * p[j]

    A thread has a float of the result. Steps and strides: see ``matvec``. Grid order: from the
    first float to the last. Access sites: the arrays as they are allocated. Table II: BICG, 64.1
    MB, Type III; n = 4096, PolyBench's size, makes 64.06 MiB.
    """

    bytes = published_footprint("cppe-BIC", "size of the matrix and four vectors")
    arrays = ("A", "r", "s", "p", "q")
    kernels = (("bicg_kernel1", False, 1, 2), ("bicg_kernel2", True, 3, 4))
