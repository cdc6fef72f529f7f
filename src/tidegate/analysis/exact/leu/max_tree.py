"""A tree of maxima: its root is the highest of its leaves, and each node has eight children.

The eight lie in one cache line. A leaf that changes is compared with its seven siblings, and so on
upwards until the highest of eight is as before: for most changes at the first or second level.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit_bare

# Its children are 8 to 15. Those of any node i begin at 8 · (i - 6), which begins a cache line.
ROOT = 7
_FAN, _BITS, _SHIFT = 8, 3, 6


def max_tree(leaves: int) -> tuple[NDArray[np.float64], int]:
    """Return a tree in which all is 0, and where its leaves begin."""
    first, wide = ROOT, 1
    while wide < leaves:
        first, wide = (first - _SHIFT) << _BITS, wide << _BITS
    room = np.zeros(first + wide + _FAN)
    unaligned = room.ctypes.data % 64 // 8
    return room[-unaligned % _FAN :], first


@jit_bare
def set_leaf(tree: Any, node: int, value: float) -> None:
    """Give a leaf a value."""
    tree[node] = value
    while node > ROOT:
        b = tree[node & -_FAN : (node & -_FAN) + _FAN]
        highest = max(max(max(b[0], b[1]), max(b[2], b[3])), max(max(b[4], b[5]), max(b[6], b[7])))
        node = (node >> _BITS) + _SHIFT
        if tree[node] == highest:
            return
        tree[node] = highest


@jit_bare
def highest_leaf(tree: Any, leaves: int) -> int:
    """Return a leaf that has the root's value, where the leaves begin at ``leaves``."""
    node = ROOT
    while node < leaves:
        first = (node - _SHIFT) << _BITS
        found = first + _FAN - 1
        for child in range(first + _FAN - 2, first - 1, -1):
            if tree[child] == tree[node]:
                found = child
        node = found
    return node
