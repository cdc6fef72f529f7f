"""MVT: a matrix times two vectors, first along its rows, then down its columns."""

from __future__ import annotations

from tidegate.papers.cppe.applications.matvec import MatrixAndVectors
from tidegate.workloads.program import workload
from tidegate.workloads.suites import published_footprint


@workload("cppe-MVT")
class MVT(MatrixAndVectors):
    """x1 += A·y1, x2 += Aᵀ·y2, A n × n floats, row-major: MVT of PolyBench/GPU, 256 threads.

        mvt_kernel1   for j:  x1[i] += a[i n + j] * y1[j]
        mvt_kernel2   for j:  x2[i] += a[j n + i] * y2[j]

    A thread has a float of x. Steps and strides: see ``matvec``. Grid order: from the first float
    to the last. Access sites: the arrays as they are allocated. Table II: MVT, 64.1 MB, Type III; n
    = 4096, PolyBench's size, makes 64.06 MiB.
    """

    bytes = published_footprint("cppe-MVT", "size of the matrix and four vectors")
    arrays = ("a", "x1", "x2", "y1", "y2")
    kernels = (("mvt_kernel1", True, 3, 1), ("mvt_kernel2", False, 4, 2))
