"""Products of a matrix and a vector by rows and by columns, as PolyBench/GPU's MVT and BICG do
them.

    by rows      thread i:  for j in 0 … n - 1:  out[i] += A[i n + j] * in[j]
    by columns   thread i:  for j in 0 … n - 1:  out[i] += A[j n + i] * in[j]

256 threads to a thread block. By rows, a thread block walks along 256 rows at once: its pages are a
row apart (four pages if n = 4096), and it stays on them until all rows come to their next pages. A
step is a line of 128 bytes of every row, or 32 rows, so it comes back to a page as often as its
warps load another line of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt
from typing import Any

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.cppe.kernel import FLOAT, LINE, across, closed, going, step, stream, use
from tidegate.workloads.program import Space, Workload

THREADS = 256
_CHUNK = LINE // FLOAT  # turns of the loop in a step


class MatrixAndVectors(Workload):
    """What MVT and BIC have in common: one matrix, four vectors, and two launches over them."""

    provenance = Provenance.DERIVED
    bytes: Option[int]
    arrays: tuple[str, ...] = ()  # the matrix and the vectors, as they are allocated
    # name, by rows or by columns, the vector read, the vector written
    kernels: tuple[tuple[str, Any, int, int], ...] = ()

    @property
    def n(self) -> int:
        """Rows and columns of the matrix: n² + 4 n floats fit."""
        return isqrt(self.bytes // FLOAT + 4) - 2

    def sizes(self) -> dict[str, int]:
        return dict(zip(self.arrays, (FLOAT * self.n**2, *(4 * [FLOAT * self.n])), strict=True))

    def launches(self, space: Space) -> Iterator[Launch]:
        for name, walk, vector, out in self.kernels:
            yield Launch(
                name, stream(space, walk, across(self.n, THREADS), (self.n, 0, vector, out))
            )


@jit
def by_rows(log: Any, block: int, count: int, shape: Any) -> Any:
    n, matrix, vector, out = shape
    while block < count and going(log):
        first, stop = THREADS * block, min(n, THREADS * (block + 1))
        for j in range(0, n, _CHUNK):
            step(log)
            end = min(n, j + _CHUNK)
            for i in range(first, stop):
                use(log, matrix, FLOAT * (i * n + j), FLOAT * (i * n + end), False)
            use(log, vector, FLOAT * j, FLOAT * end, False)
            use(log, out, FLOAT * first, FLOAT * stop, True)
        block += closed(log)
    return block


@jit
def by_columns(log: Any, block: int, count: int, shape: Any) -> Any:
    n, matrix, vector, out = shape
    while block < count and going(log):
        first, stop = THREADS * block, min(n, THREADS * (block + 1))
        for j in range(0, n, _CHUNK):
            step(log)
            end = min(n, j + _CHUNK)
            for row in range(j, end):
                use(log, matrix, FLOAT * (row * n + first), FLOAT * (row * n + stop), False)
            use(log, vector, FLOAT * j, FLOAT * end, False)
            use(log, out, FLOAT * first, FLOAT * stop, True)
        block += closed(log)
    return block
