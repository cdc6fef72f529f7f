"""Products of a matrix and a vector by rows and by columns, as in PolyBench/GPU's MVT and BICG.

    by rows      thread i:  for j in 0 … n - 1:  out[i] += A[i n + j] * in[j]
    by columns   thread i:  for j in 0 … n - 1:  out[i] += A[j n + i] * in[j]

256 threads to a thread block. By rows, a thread block walks along 256 rows at once: its pages are a
row apart (four pages if n = 4096), and it stays on them until all rows come to their next pages. A
step is a line of 128 bytes of every row, or 32 rows, so it returns to a page as often as its warps
load another line of it.
"""

from __future__ import annotations

from math import isqrt
from typing import Any

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.workloads.program import Derived, Launches, Space
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

    @property
    def n(self) -> int:
        """Rows and columns of the matrix: n² + 4 n floats fit."""
        return isqrt(self.bytes // FLOAT + 4) - 2

    def sizes(self) -> dict[str, int]:
        return dict(zip(self.arrays, (FLOAT * self.n**2, *(4 * [FLOAT * self.n])), strict=True))

    def launches(self, space: Space) -> Launches:
        count = across(self.n, THREADS)
        for name, *arguments in self.kernels:
            yield launch_of(space, name, _product, count, (self.n, *arguments))


@jit
def _product(log: Any, count: int, shape: Any) -> None:
    n, by_rows, vector, out = shape
    for block in blocks(log, count):
        own = THREADS * block, min(n, THREADS * (block + 1))
        for j in range(0, n, _CHUNK):
            step(log)
            now = j, min(n, j + _CHUNK)
            rows, columns = (own, now) if by_rows else (now, own)
            use_rect(log, _MATRIX, n, rows, columns, False)
            use_floats(log, vector, now[0], now[1], False)
            use_floats(log, out, own[0], own[1], True)
