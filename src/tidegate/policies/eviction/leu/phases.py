"""Phases: LEU's priority as a function of the time since the last touch, cut where its formula
changes.

The priority is the steepest slope from where an owner stands now, (tesla, touches that have
passed), to any later point of its cumulative histogram, (interval, touches up to it):

    touches │                        ● 9           While tesla is in [2, 6) the eye stands at height 4 and moves right.
            │               ● 7   .                At first it sees 9 as the steepest, from some tesla on 7, and just
            │            . ·                       before 6 the point that is next: the lease chosen only ever
          4 │     ●- - eye→ - - -                  gets shorter, along the upper hull of the points to come.
            │                                      Between two such changes the priority is K / (N · (lease - tesla)),
            └─────┴─────────┴────────┴── tesla     which only rises. At 6 it drops: that chance is gone.
                  2         6        11

Here N is how many touches have an interval above tesla and K how many of them fall within the
lease. Going through the histogram from its end, the hull is a stack. What the eye sees between two
points are the points that the left one takes off the stack and the one it stops at, so a histogram
of m points has at most 2 m + 1 phases, however many leases there are to be tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit, jit_inline

# columns of a phase: first tesla, best lease, K, N, and the owner's next phase at whose start the
# priority is lower
START, LEASE, WITHIN, LEFT, RARER = range(5)
ROW_COLUMNS = 5
# the phase after the longest interval, when no use is expected: K = 0, and a lease that is never
# over
ENDLESS = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Histograms:
    """The distributions of all owners: owner ``o`` has the entries ``first[o]`` to ``first[o +
    1]``.

    ``interval``: rising within an owner. ``upto``: how many of the owner's touches have this
    interval or a shorter one. ``touches``: how many the owner made, those never followed by another
    among them.
    """

    first: NDArray[np.int64]
    interval: NDArray[np.int32]
    upto: NDArray[np.int32]
    touches: NDArray[np.int64]


class Phases(NamedTuple):
    """Owner ``o`` goes through the rows ``first[o]`` to ``last[o]`` of ``rows``, by rising START,
    from tesla 0 on.

    Who looks for the first priority below some level goes from row to row by RARER. Behind the last
    there is no rarer one.
    """

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    rows: NDArray[np.int32]


def phases_of(histograms: Histograms) -> Phases:
    """Cut every owner's time into phases."""
    owners = len(histograms.touches)
    rows = np.empty((2 * len(histograms.interval) + owners, ROW_COLUMNS), np.int32)
    first, last = np.empty(owners, np.int64), np.empty(owners, np.int64)
    hull = np.empty(int(np.diff(histograms.first).max(initial=0)) + 1, np.int64)
    h = histograms
    cut(h.first, h.interval, h.upto, h.touches, hull, first, last, rows)
    _link(first, last, rows)
    return Phases(first, last, rows)


@jit
def cut(
    begin: Any, interval: Any, upto: Any, touches: Any, hull: Any, first: Any, last: Any, rows: Any
) -> None:
    """Rows are written from the end of an owner's room to its beginning, since the hull grows that
    way.
    """
    for owner in range(len(touches)):
        row = 2 * begin[owner + 1] + owner
        last[owner] = row
        size, low = 0, begin[owner]  # of the hull
        # low - 1 stands for (0, 0), where all begin
        for point in range(begin[owner + 1] - 1, low - 2, -1):
            at = int(interval[point]) if point >= low else 0
            passed = int(upto[point]) if point >= low else 0
            left = touches[owner] - passed
            if size == 0:
                rows[row, START], rows[row, LEASE], rows[row, WITHIN], rows[row, LEFT] = (
                    at,
                    ENDLESS,
                    0,
                    1,
                )
                row -= 1
            else:
                row, size = _seen_from(at, passed, left, interval, upto, hull, size, rows, row)
            if point >= low:
                hull[size] = point
                size += 1
        first[owner] = row + 1


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
    """Write the phases between a point and the next, take off the hull what the point hides; the
    new row and size.
    """
    end = int(interval[hull[size - 1]])  # a phase that would begin here begins too late
    while True:
        lease, within = int(interval[hull[size - 1]]), upto[hull[size - 1]] - passed
        start = at
        if size > 1:
            longer, more = int(interval[hull[size - 2]]), upto[hull[size - 2]] - passed
            # at first the longer lease is the better one
            if more * (lease - at) > within * (longer - at):
                # within / (lease - τ) ≥ more / (longer - τ) from this τ on, rounded up
                start = -((within * longer - more * lease) // (more - within))
        if start < end:
            rows[row, START], rows[row, LEASE], rows[row, WITHIN], rows[row, LEFT] = (
                start,
                lease,
                within,
                left,
            )
            row -= 1
            end = start
        if start == at:
            return row, size
        size -= 1


@jit_inline
def waits(rows: Any, row: Any) -> Any:
    """1 / priority at the start of a phase, as a double: how long one waits for one use."""
    within = rows[row, WITHIN]
    return (
        float(rows[row, LEASE] - rows[row, START]) * rows[row, LEFT] / within if within else np.inf
    )


@jit
def _link(first: Any, last: Any, rows: Any) -> None:
    for owner in range(len(first)):
        for row in range(last[owner], first[owner] - 1, -1):
            here, other = waits(rows, row), row + 1
            while other <= last[owner] and waits(rows, other) <= here:
                other = int(rows[other, RARER])
            rows[row, RARER] = other
