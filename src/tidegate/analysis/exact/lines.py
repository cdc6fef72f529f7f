"""Lines: LEU's priority turned upside down.

While a block stays in one phase (see phases.py), 1 / priority = (deadline - now) · N / K is a
straight line that falls with time. The lowest priority is the highest line. Which of two is higher
is decided in whole numbers of two words, so it is exact; heights as doubles are for finding out
quickly who need not be asked.
"""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit_bare, jit_inline
from tidegate.policies.eviction.leu.phases import LEASE, LEFT, START, WITHIN

# columns of a line: touched at this time by this owner, whose phase this is (-1: to be found), the
# line itself, the time at which its phase is over, and the block whose line it is
TOUCHED, OWNER, PHASE, DEADLINE, SLOPE_N, SLOPE_K, ENDS, BLOCK = range(8)
COLUMNS = 8  # a power of two, so that a line is a cache line
FOREVER = 2**62
SLACK = 2.0**-50  # more than what rounding can do to a height
ENDLESSLY = 2.0**100  # above all heights of lines that fall

_HALF, _LOW = 32, 2**32 - 1


@jit_inline
def height(lines: Any, at: Any, now: int) -> Any:
    """1 / priority, as a double.

    Where no use is expected, the block touched longest ago is the highest.
    """
    within = lines[at, SLOPE_K]
    if within:
        return float((lines[at, DEADLINE] - now) * lines[at, SLOPE_N]) / within
    return ENDLESSLY * (2**32 - lines[at, TOUCHED])


@jit_inline
def enter(lines: Any, at: Any, rows: Any, row: Any) -> None:
    """Give a line this phase."""
    touched, within = lines[at, TOUCHED], rows[row, WITHIN]
    lines[at, PHASE], lines[at, DEADLINE] = row, touched + rows[row, LEASE]
    lines[at, SLOPE_N], lines[at, SLOPE_K] = rows[row, LEFT], within
    lines[at, ENDS] = touched + rows[row + 1, START] if within else FOREVER


@jit_bare
def enter_phase(lines: Any, at: int, phases: Any, now: int) -> None:
    """Give a line the phase of this moment."""
    owner, rows = lines[at, OWNER], phases.rows
    phase, last, tesla = (
        max(lines[at, PHASE], phases.first[owner]),
        phases.last[owner],
        now - lines[at, TOUCHED],
    )
    step = 1
    # in growing steps, then in halves
    while phase + step <= last and rows[phase + step, START] <= tesla:
        phase += step
        step *= 2
    while step:
        if phase + step <= last and rows[phase + step, START] <= tesla:
            phase += step
        step >>= 1
    enter(lines, at, rows, phase)


@jit_bare
def lower(lines: Any, a: int, b: int, now: int) -> bool:
    """Is line a's priority lower than b's? (deadline - now) · N is below 2⁶² and K below 2³¹: two
    words hold all.

    Of equal ones that of the block touched longest ago is the lower.
    """
    x, y = (
        (lines[a, DEADLINE] - now) * lines[a, SLOPE_N],
        (lines[b, DEADLINE] - now) * lines[b, SLOPE_N],
    )
    a_k, b_k = lines[a, SLOPE_K], lines[b, SLOPE_K]
    x_low, y_low = (x & _LOW) * b_k, (y & _LOW) * a_k
    x_high, y_high = (x >> _HALF) * b_k + (x_low >> _HALF), (y >> _HALF) * a_k + (y_low >> _HALF)
    if x_high != y_high:
        return bool(x_high > y_high)
    x_low, y_low = x_low & _LOW, y_low & _LOW
    if x_low != y_low:
        return bool(x_low > y_low)
    return bool(lines[a, TOUCHED] < lines[b, TOUCHED])
