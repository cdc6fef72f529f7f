"""Fenwick trees: partial sums in an array, updated and read in logarithmic time (Fenwick, 1994).

Places count from 1; ``tree[0]`` is not used. Node ``n`` holds the sum of the ``n & -n`` places that
end with ``n``.
"""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit_bare


@jit_bare
def add(tree: Any, place: int, change: int) -> None:
    """Add at one place."""
    while place < len(tree):
        tree[place] += change
        place += place & -place


@jit_bare
def sum_to(tree: Any, place: int) -> int:
    """Return the sum of all places up to this one."""
    total = 0
    while place > 0:
        total += tree[place]
        place -= place & -place
    return total


@jit_bare
def build(tree: Any) -> None:
    """Turn an array of values into their tree, in place."""
    for node in range(1, len(tree)):
        above = node + (node & -node)
        if above < len(tree):
            tree[above] += tree[node]
