"""Products of a matrix and a vector by rows and by columns, as in PolyBench/GPU's MVT and BICG.

    by rows      thread i:  for j in 0 … n - 1:  out[i] += A[i n + j] * in[j]
    by columns   thread i:  for j in 0 … n - 1:  out[i] += A[j n + i] * in[j]

256 threads to a thread block. By rows, a thread block walks along 256 rows at once: its pages are a
row apart (four pages if n = 4096), and it stays on them until all rows come to their next pages. A
step is a line of 128 bytes of every row, or 32 rows, so it returns to a page as often as its warps
load another line of it. ``out`` stands in memory, so every step loads and stores it.
"""

from __future__ import annotations

from math import isqrt
from typing import Any

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.workloads.program import Derived, Launches, Space, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import (
    FLOAT,
    LINE,
    across,
    blocks,
    launch_of,
    step,
    use_floats,
    use_rect,
)

THREADS = 256
_MATRIX = 0
_CHUNK = LINE // FLOAT  # iterations of the loop in a step


class MatrixAndVectors(Derived):
    """What MVT and BIC have in common: one matrix, four vectors, and two launches over them."""

    bytes: Option[int]
    arrays: tuple[str, ...] = ()  # the matrix and the vectors, as they are allocated
    # name, whether by rows, the vector read, the vector written
    kernels: tuple[tuple[str, bool, int, int], ...] = ()
    cleared = False  # whether a thread first stores a zero

    @property
    def n(self) -> int:
        """Rows and columns of the matrix: n² + 4 n floats fit."""
        return isqrt(self.bytes // FLOAT + 4) - 2

    def sizes(self) -> dict[str, int]:
        return dict(zip(self.arrays, (FLOAT * self.n**2, *(4 * [FLOAT * self.n])), strict=True))

    def launches(self, space: Space) -> Launches:
        count = across(self.n, THREADS)
        for name, *arguments in self.kernels:
            yield launch_of(space, name, _product, count, (self.n, self.cleared, *arguments))


@jit
def _product(log: Any, count: int, shape: Any) -> None:
    n, cleared, by_rows, vector, out = shape
    for block in blocks(log, count):
        own = THREADS * block, min(n, THREADS * (block + 1))
        if cleared:
            use_floats(log, out, own[0], own[1], True)
        for j in range(0, n, _CHUNK):
            step(log)
            now = j, min(n, j + _CHUNK)
            rows, columns = (own, now) if by_rows else (now, own)
            use_rect(log, _MATRIX, n, rows, columns, False)
            use_floats(log, vector, now[0], now[1], False)
            use_floats(log, out, own[0], own[1], False)
            use_floats(log, out, own[0], own[1], True)


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


@workload("cppe-BIC")
class BICG(MatrixAndVectors):
    """s = Aᵀ·r, q = A·p, A n × n floats, row-major: BICG of PolyBench/GPU, 256 threads.

        bicg_kernel1   s[j] = 0;  for i:  s[j] += A[i n + j] * r[i]
        bicg_kernel2   q[i] = 0;  for j:  q[i] += A[i n + j] * p[j]

    A thread has a float of the result. Steps and strides: see ``matvec``. Grid order: from the
    first float to the last. Access sites: the arrays as they are allocated. Table II: BICG, 64.1
    MB, Type III; n = 4096, PolyBench's size, makes 64.06 MiB.
    """

    bytes = published_footprint("cppe-BIC", "size of the matrix and four vectors")
    arrays = ("A", "r", "s", "p", "q")
    cleared = True
    kernels = (("bicg_kernel1", False, 1, 2), ("bicg_kernel2", True, 3, 4))
