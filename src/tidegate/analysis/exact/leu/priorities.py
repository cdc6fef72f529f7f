"""LEU's priorities as lines that fall with time, and the tree that finds the highest line.

The priority is turned upside down. While a block stays in one phase
(policies/eviction/leu/phases.py),

    height = 1 / priority = (touched + lease - now) · N / K

The lowest priority is the highest line. Two lines are compared exactly, in whole numbers of two
words. Heights as doubles serve to skip most comparisons.

The root of a tree of maxima is the highest of its leaves, and each node has eight children, which
lie in one cache line. A leaf that changes is compared with its seven siblings, and so on upwards
until the highest of eight is as before: for most changes at the first or second level.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit_bare, jit_inline
from tidegate.policies.eviction.leu.phases import LEASE, LEFT, START, WITHIN

# columns of a block: time and owner of its last touch, row of its phase (-1: not known yet)
TOUCHED, OWNER, PHASE = range(3)
BLOCK_COLUMNS = (
    8  # the others are the victim search's; a power of two: no block is in two cache lines
)
SLACK = 2.0**-50  # more than the rounding error of a height
ENDLESS_HEIGHT = 2.0**100  # above the height of every line that falls

_HALF, _LOW = 32, 2**32 - 1


@jit_inline
def height(blocks: Any, block: Any, rows: Any, now: int) -> Any:
    """Return 1 / priority as a double.

    Where no use is expected, the block touched longest ago is the highest.
    """
    row = blocks[block, PHASE]
    within = rows[row, WITHIN]
    if within:
        return float((blocks[block, TOUCHED] + rows[row, LEASE] - now) * rows[row, LEFT]) / within
    return ENDLESS_HEIGHT * (2**32 - blocks[block, TOUCHED])


@jit_bare
def enter_phase(blocks: Any, block: int, phases: Any, now: int) -> None:
    """Find the phase that a block is in now. Its known phase must not lie after it."""
    owner, rows, age = blocks[block, OWNER], phases.rows, now - blocks[block, TOUCHED]
    row, last, step = max(blocks[block, PHASE], phases.first[owner]), phases.last[owner], 1
    # steps double, then halve
    while row + step <= last and rows[row + step, START] <= age:
        row += step
        step *= 2
    while step:
        if row + step <= last and rows[row + step, START] <= age:
            row += step
        step >>= 1
    blocks[block, PHASE] = row


@jit_bare
def is_lower(blocks: Any, a: int, b: int, rows: Any, now: int) -> bool:
    """Return whether block a's priority is lower than b's. Of equals, it is if touched first.

    (touched + lease - now) · N is below 2⁶² and K below 2³¹, so that two words hold the products.
    """
    a_row, b_row = blocks[a, PHASE], blocks[b, PHASE]
    x = (blocks[a, TOUCHED] + rows[a_row, LEASE] - now) * rows[a_row, LEFT]
    y = (blocks[b, TOUCHED] + rows[b_row, LEASE] - now) * rows[b_row, LEFT]
    a_k, b_k = rows[a_row, WITHIN], rows[b_row, WITHIN]
    x_low, y_low = (x & _LOW) * b_k, (y & _LOW) * a_k
    x_high, y_high = (x >> _HALF) * b_k + (x_low >> _HALF), (y >> _HALF) * a_k + (y_low >> _HALF)
    if x_high != y_high:
        return bool(x_high > y_high)
    x_low, y_low = x_low & _LOW, y_low & _LOW
    if x_low != y_low:
        return bool(x_low > y_low)
    return bool(blocks[a, TOUCHED] < blocks[b, TOUCHED])


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
