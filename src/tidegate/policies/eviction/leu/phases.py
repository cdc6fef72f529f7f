"""Phases: LEU's priority as a function of the time since the last touch (tesla), in pieces.

The priority is the steepest slope from an owner's position (tesla, touches that have passed) to any
later point of its cumulative histogram (interval, touches up to it):

    touches │                        ● 9           For tesla in [2, 6) the eye is at height 4 and
            │               ● 7   .                moves right. At first the slope to 9 is the
            │            . ·                       steepest, from some tesla on that to 7, and just
          4 │     ●- - eye→ - - -                  before 6 that to the next point: the best lease
            │                                      gets shorter, along the upper hull of the later
            └─────┴─────────┴────────┴── tesla     points. Between two changes the priority is
                  2         6        11            K / (N · (lease - tesla)), which rises. At 6 it
                                                   drops: that chance has passed.

N is the number of touches with an interval above tesla, K the number of those within the lease.
The histogram is read from its end, and the hull is a stack. The phases between two points are those
of the points that the left one removes from the stack, and of the one below them. So a histogram of
m points has at most 2 m + 1 phases, however many leases there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit, jit_inline

# columns of a phase: first tesla, best lease, K, N, and the owner's next phase that begins with a
# lower priority
START, LEASE, WITHIN, LEFT, RARER = range(5)
ROW_COLUMNS = 5
ENDLESS = 2**31 - 1  # lease of the phase after the longest interval: K = 0, no use is expected


@dataclass(frozen=True, eq=False)
class Histograms:
    """The distributions of all owners: owner ``o`` has the entries ``first[o]`` to ``first[o +
    1]``.

    ``interval``: rising within an owner. ``upto``: the owner's touches with this interval or a
    shorter one. ``touches``: all of the owner's, those without a successor included.
    """

    first: NDArray[np.int64]
    interval: NDArray[np.int32]
    upto: NDArray[np.int32]
    touches: NDArray[np.int64]


class Phases(NamedTuple):
    """The phases of owner ``o`` are ``rows[first[o]]`` to ``rows[last[o]]``, by rising START from
    tesla 0 on.

    The first priority below a level is found from row to row by RARER. The last row has none.
    """

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    rows: NDArray[np.int32]


def phases_of(histograms: Histograms) -> Phases:
    """Return the phases of every owner."""
    h, owners = histograms, len(histograms.touches)
    rows = np.empty((2 * len(h.interval) + owners, ROW_COLUMNS), np.int32)
    first, last = np.empty((2, owners), np.int64)
    hull = np.empty(int(np.diff(h.first).max(initial=0)) + 1, np.int64)
    cut(h.first, h.interval, h.upto, h.touches, hull, first, last, rows)
    _link(first, last, rows)
    return Phases(first, last, rows)


@jit
def cut(
    begin: Any, interval: Any, upto: Any, touches: Any, hull: Any, first: Any, last: Any, rows: Any
) -> None:
    """Write the phases. An owner's rows are written from last to first, as the hull grows."""
    for owner in range(len(touches)):
        row = 2 * begin[owner + 1] + owner
        last[owner] = row
        size, low = 0, begin[owner]  # of the hull
        # low - 1 is the point (0, 0), where all begin
        for point in range(begin[owner + 1] - 1, low - 2, -1):
            at = int(interval[point]) if point >= low else 0
            passed = int(upto[point]) if point >= low else 0
            left = touches[owner] - passed
            if size == 0:
                _write(rows, row, at, ENDLESS, 0, 1)
                row -= 1
            else:
                row, size = _seen_from(at, passed, left, interval, upto, hull, size, rows, row)
            if point >= low:
                hull[size] = point
                size += 1
        first[owner] = row + 1


@jit_inline
def _write(rows: Any, row: int, start: int, lease: int, within: int, left: int) -> None:
    rows[row, START], rows[row, LEASE], rows[row, WITHIN], rows[row, LEFT] = (
        start,
        lease,
        within,
        left,
    )


@jit
def _seen_from(
    at: int,
    passed: int,
    left: int,
    interval: Any,
    upto: Any,
    hull: Any,
    size: int,
    rows: Any,
    row: int,
) -> Any:
    """Write the phases between a point and the next, and remove from the hull what the point hides.
    Return the new row and size.
    """
    end = int(interval[hull[size - 1]])  # phases begin before the next point
    while True:
        lease, within = int(interval[hull[size - 1]]), upto[hull[size - 1]] - passed
        start = at
        if size > 1:
            longer, more = int(interval[hull[size - 2]]), upto[hull[size - 2]] - passed
            # the longer lease is better at first
            if more * (lease - at) > within * (longer - at):
                # within / (lease - τ) ≥ more / (longer - τ) from this τ on, rounded up
                start = -((within * longer - more * lease) // (more - within))
        if start < end:
            _write(rows, row, start, lease, within, left)
            row -= 1
            end = start
        if start == at:
            return row, size
        size -= 1


@jit_inline
def waits(rows: Any, row: Any) -> Any:
    """Return 1 / priority at the start of a phase, as a double: the time per expected use."""
    time = float(rows[row, LEASE] - rows[row, START]) * rows[row, LEFT]
    return time / rows[row, WITHIN] if rows[row, WITHIN] else np.inf


@jit
def _link(first: Any, last: Any, rows: Any) -> None:
    for owner in range(len(first)):
        for row in range(last[owner], first[owner] - 1, -1):
            here, other = waits(rows, row), row + 1
            while other <= last[owner] and waits(rows, other) <= here:
                other = int(rows[other, RARER])
            rows[row, RARER] = other
