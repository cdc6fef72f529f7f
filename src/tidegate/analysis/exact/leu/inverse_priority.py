"""Inverse priorities: LEU's priority turned upside down, so that it is a line that falls with time.

While a block stays in one phase (policies/eviction/leu/phases.py),

    height = 1 / priority = (touched + lease - now) · N / K

The lowest priority is the highest line. Two lines are compared exactly, in whole numbers of two
words. Heights as doubles serve to skip most comparisons.
"""

from __future__ import annotations

from typing import Any

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
