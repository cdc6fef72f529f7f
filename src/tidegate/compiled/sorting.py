"""Sorting a few hundred values in compiled code that makes no arrays."""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit_bare


@jit_bare
def sort(values: Any, n: int) -> None:
    """Sort the first ``n`` values: a Shell sort, which compiles a second faster than NumPy's."""
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            value = values[i]
            j = i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3
