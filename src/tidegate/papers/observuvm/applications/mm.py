"""MM: tiled matrix multiplication at the size of ObservUVM."""

from __future__ import annotations

from tidegate.workloads.matmul import MatMul
from tidegate.workloads.program import workload
from tidegate.workloads.suites import published_footprint


@workload("MM")
class MM(MatMul):
    """C = A·B, n × n floats, row-major: ``matmul`` (matrixMul of the CUDA samples).

    Block (bx, by), thread (tx, ty), for k = 0, 32, 64, … < n:

        As[ty][tx] = A[(32 by + ty) n + k + tx]
        Bs[ty][tx] = B[(k + ty) n + 32 bx + tx]
        C[(32 by + ty) n + 32 bx + tx] = Σ As · Bs        after the last k

    Operands: A and C stream by rows of tiles; B is read once for every row of tiles. Grid order: bx
    fastest. Access sites: 0 = A, 1 = B, 2 = C. Table II: "Tiled matrix multiplication" of the CUDA
    samples, 10.1 GB.
    """

    bytes = published_footprint("MM", "size of the three matrices together")
