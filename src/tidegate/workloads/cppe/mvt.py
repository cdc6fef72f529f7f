"""MVT: a matrix times two vectors, first along its rows, then down its columns."""

from __future__ import annotations

from tidegate import units
from tidegate.options import Option
from tidegate.workloads.cppe.matvec import MatrixAndVectors, by_columns, by_rows
from tidegate.workloads.program import workload
from tidegate.workloads.suites import published_bytes


@workload("cppe-MVT")
class MVT(MatrixAndVectors):
    """x1 += A·y1, x2 += Aᵀ·y2, A n × n floats, row-major: MVT of PolyBench/GPU, 256 threads, a
    float of x each.

        mvt_kernel1   for j:  x1[i] += a[i n + j] * y1[j]
        mvt_kernel2   for j:  x2[i] += a[j n + i] * y2[j]

    Steps and strides: see ``matvec``. Grid order: from the first float to the last. References: the
    arrays as they are allocated. Table II: MVT, 64.1 MB, Type III; n = 4096, PolyBench's size,
    makes 64.06 MiB.
    """

    bytes = Option(
        published_bytes("cppe", "cppe-MVT"),
        "size of the matrix and four vectors",
        parse=units.size,
        least=1,
    )
    arrays = ("a", "x1", "x2", "y1", "y2")
    kernels = (("mvt_kernel1", by_rows, 3, 1), ("mvt_kernel2", by_columns, 4, 2))
