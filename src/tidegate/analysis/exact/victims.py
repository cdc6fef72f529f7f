"""Victims: who has the lowest LEU priority, without asking everyone at every miss.

The victim is the block whose line is highest (see lines.py). A line only falls, until its block is
touched or its next phase begins:

    1/priority │ ╲                      Most lines are never the highest. A line below the level sleeps until the first of
               │  ╲      │╲             its phases that begins above the level: an alarm is set for that time. The whole
               │   ╲     │ ╲            sequence is known; if the block is touched before, no alarm is needed.
         level ┼ ─ ─╲─ ─ ┼ ─╲─ ─
               │     ╲   │   ╲          The few above the level are awake and have a seat. Where a line was when last
               │      ╲  │    ╲         looked at is a bound on where it is now. Only the line with the highest bound is
               └─────────┴───────── now looked at: it is the victim, or it gets a lower bound. Those behind it are not
                       alarm            asked, however often they cross each other.

When nobody above the level is left, everyone is looked at once and the level is put where a few are
above it. Victims' heights hardly change in the course of most sequences. So when many have woken
for nothing, the level is raised to a little below the lowest victim of late; that takes no look at
anyone, as alarms set before are early and never late.

Bounds and levels are in floating point and rounded to the safe side. Lines that are closer to each
other than rounding can tell are compared exactly. Equal priorities: the block touched longest ago
is the victim.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.analysis.exact.bounds import ROOT, bounds_of, highest_leaf, put
from tidegate.analysis.exact.lines import (
    BLOCK,
    COLUMNS,
    ENDLESSLY,
    ENDS,
    OWNER,
    PHASE,
    SLACK,
    TOUCHED,
    enter,
    enter_phase,
    height,
    lower,
)
from tidegate.compiled.intrinsics import fetch_ahead
from tidegate.compiled.jit import jit_bare, jit_inline
from tidegate.compiled.sorting import sort
from tidegate.policies.eviction.leu.phases import RARER, ROW_COLUMNS, START, waits

# columns of a block: when and by which owner it was touched, when it will be again; the phase its
# alarm is set for and the next block with an alarm for the same time; its seat and its place among
# the residents
AT, BY, AGAIN, WAKES, LINK, SEAT, PLACE = range(7)
BLOCK_COLUMNS = 8  # a power of two, so that no block lies in two cache lines
ASLEEP, ABSENT = -1, -2  # instead of a seat
NOBODY = -1
# columns of wake: an owner's first phase above the level, its START, in which epoch
ROW, SLEEP, FOUND = range(3)
WAKE_COLUMNS = 4
LEVEL, LOWEST = range(2)  # in level, see Residents
EPOCH, SURPLUS, FREE, SEATS = range(4)  # in counts
AWAKE_SHARE = 1 / 16  # of all lines, when the level is lowered
SAMPLE = 512  # lines looked at to find that level
BELOW_VICTIMS = 15 / 16  # the level over the lowest victim, when it is raised
HORIZON = 4  # times as many touches as there are residents: no alarm is set later
AHEAD = 8  # touches; what will be needed then is fetched into the cache

_JUST_BELOW = 1 - 2.0**-30  # so that at least one line is above the level, and by more than SLACK


class Residents(NamedTuple):
    """``blocks``: all there are, ``held``: the resident ones. ``lines``: of those awake, by seat,
    and one for the look at a sleeper. ``bounds``: theirs (see bounds.py), from ``first_leaf`` on.
    ``free``: seats that were given up. ``wheel``: the first of the blocks with an alarm for each
    time. ``wake``: by owner. ``level``: where it is, and the lowest victim since it was moved.
    ``counts``: how often it was moved, how many more rose above it since than were victims, how
    many seats are free and how many were ever taken. ``heights``: room for those of a sample.
    Compiled functions get all this by a Reference.
    """

    blocks: NDArray[np.int32]
    held: NDArray[np.int32]
    lines: NDArray[np.int64]
    bounds: NDArray[np.float64]
    free: NDArray[np.int64]
    wheel: NDArray[np.int32]
    wake: NDArray[np.int32]
    level: NDArray[np.float64]
    counts: NDArray[np.int64]
    first_leaf: NDArray[np.int64]
    heights: NDArray[np.float64]


def residents_of(blocks: int, capacity: int, owners: int) -> Residents:
    """A memory of ``capacity`` frames in which nothing is resident yet."""
    bounds, first_leaf = bounds_of(capacity)
    known = np.full((blocks, BLOCK_COLUMNS), ABSENT, np.int32)
    wheel = np.full(max(4, 1 << (HORIZON * capacity).bit_length()), NOBODY, np.int32)
    lines, free = np.zeros((capacity + 1, COLUMNS), np.int64), np.zeros(capacity, np.int64)
    wake, held = np.zeros((owners, WAKE_COLUMNS), np.int32), np.zeros(capacity, np.int32)
    return Residents(
        known,
        held,
        lines,
        bounds,
        free,
        wheel,
        wake,
        np.zeros(2),
        np.zeros(4, np.int64),
        np.array([first_leaf]),
        np.zeros(2 * SAMPLE),
    )


@jit_inline
def resident(r: Any, block: Any) -> bool:
    return r.blocks[block, SEAT] != ABSENT


@jit_inline
def expect(r: Any, block: Any, owner: Any) -> None:
    """A touch of the block by this owner is near: have what it needs fetched."""
    fetch_ahead(r.blocks, block * BLOCK_COLUMNS)
    fetch_ahead(r.wake, owner * WAKE_COLUMNS)


@jit_inline
def arrive(r: Any, block: Any, place: Any) -> None:
    """The block is resident from now on, and in this place among the residents. A touch follows."""
    r.blocks[block, SEAT], r.blocks[block, PLACE] = ASLEEP, place
    r.held[place] = block


@jit_inline
def touch(r: Any, phases: Any, block: Any, owner: Any, now: int, again: int) -> None:
    """The resident block was touched by this owner, and will be again at this time."""
    blocks = r.blocks
    if blocks[block, SEAT] >= 0:
        _give_up_seat(r, blocks[block, SEAT])
    blocks[block, AT], blocks[block, BY], blocks[block, AGAIN] = now, owner, again
    if r.counts[EPOCH]:  # there is a level
        if r.wake[owner, FOUND] != r.counts[EPOCH]:
            _find_wake(r, phases, np.int64(owner))
        if r.wake[owner, SLEEP]:
            _wait(r, block, r.wake[owner, ROW], now + r.wake[owner, SLEEP], now)
        else:
            _rise(r, phases.rows, block, r.wake[owner, ROW], now)


@jit_bare
def _find_wake(r: Any, phases: Any, owner: int) -> None:
    row = _above(r, phases.rows, phases.first[owner])
    r.wake[owner, ROW], r.wake[owner, SLEEP], r.wake[owner, FOUND] = (
        row,
        phases.rows[row, START],
        r.counts[EPOCH],
    )


@jit_inline
def _above(r: Any, rows: Any, row: Any) -> Any:
    """The first row, from this one on, that begins above the level.

    An owner's last one does: no use is expected there.
    """
    level = r.level[LEVEL] * (1 - SLACK)
    while waits(rows, row) <= level:
        row = rows[row, RARER]
    return row


@jit_bare
def leave(r: Any, phases: Any, now: int) -> int:
    """The victim, which is not resident any more. All places must be taken."""
    seat = _highest(r, now)
    if seat < 0:
        _lower_level(r, phases, now)
        seat = _highest(r, now)
    r.level[LOWEST] = min(r.level[LOWEST], height(r.lines, seat, now))
    block = r.lines[seat, BLOCK]
    _give_up_seat(r, seat)
    r.blocks[block, SEAT] = ABSENT
    r.counts[SURPLUS] -= 1  # that one was of use
    if r.counts[SURPLUS] > len(r.held):
        _raise_level(r)
    return int(block)


@jit_bare
def _highest(r: Any, now: int) -> int:
    """The seat of the line that is highest now; -1 if nobody is above the level.

    Who is not the highest gets as bound its height a moment later, as nobody will be asked sooner.
    That is lower than the best by more than rounding can hide, so nobody is looked at twice.
    """
    lines, bounds, first = r.lines, r.bounds, r.first_leaf[0]
    best, level = -1, r.level[LEVEL]
    least = level
    while bounds[ROOT] > least:
        seat = highest_leaf(bounds, first) - first
        here = height(lines, seat, now) * (1 - SLACK)
        if here <= level or lines[seat, ENDS] <= now:
            _give_up_seat(r, seat)
        elif best >= 0 and lower(lines, best, seat, now):
            put(bounds, first + seat, height(lines, seat, now + 1))
        else:
            if best >= 0:
                put(bounds, first + best, height(lines, best, now + 1))
            put(bounds, first + seat, 0.0)
            best, least = seat, here
    return best


# Awake and asleep


@jit_bare
def _rise(r: Any, rows: Any, block: int, row: int, now: int) -> None:
    """The block is in this phase and above the level: it needs a seat, and an alarm for the next
    such phase.
    """
    seat = r.blocks[block, SEAT]
    if seat < 0:
        seat = _take_seat(r, block)
    enter(r.lines, seat, rows, row)
    put(r.bounds, r.first_leaf[0] + seat, height(r.lines, seat, now))
    r.counts[SURPLUS] += 1
    if r.lines[seat, ENDS] < r.blocks[block, AGAIN]:
        row = _above(r, rows, row + 1)
        _wait(r, block, row, r.lines[seat, TOUCHED] + rows[row, START], now)


@jit_bare
def _take_seat(r: Any, block: int) -> int:
    """Give a block a seat, one that was given up if there is any."""
    if r.counts[FREE]:
        r.counts[FREE] -= 1
        seat = r.free[r.counts[FREE]]
    else:
        seat = r.counts[SEATS]
        r.counts[SEATS] += 1
    r.blocks[block, SEAT] = seat
    r.lines[seat, BLOCK], r.lines[seat, TOUCHED] = block, r.blocks[block, AT]
    return int(seat)


@jit_bare
def _give_up_seat(r: Any, seat: int) -> None:
    put(r.bounds, r.first_leaf[0] + seat, 0.0)
    r.blocks[r.lines[seat, BLOCK], SEAT] = ASLEEP
    r.free[r.counts[FREE]] = seat
    r.counts[FREE] += 1


@jit_inline
def _wait(r: Any, block: Any, row: Any, when: Any, now: int) -> None:
    """Set an alarm for the time when this phase begins, or for the horizon, unless the block is
    touched before.
    """
    if when < r.blocks[block, AGAIN]:
        last = len(r.wheel) - 1
        tick = min(when, now + last) & last
        r.blocks[block, WAKES], r.blocks[block, LINK] = row, r.wheel[tick]
        r.wheel[tick] = block


@jit_inline
def ring(r: Any, phases: Any, now: int) -> None:
    """Look at whose alarm has come. To be called at every touch, before anything else."""
    last = len(r.wheel) - 1
    _expect_alarm(r, phases.rows, r.wheel[(now + 2 * AHEAD) & last], r.wheel[(now + AHEAD) & last])
    block = r.wheel[now & last]
    r.wheel[now & last] = NOBODY
    while block >= 0:
        after = r.blocks[block, LINK]
        if r.blocks[block, SEAT] != ABSENT:
            row = _above(r, phases.rows, r.blocks[block, WAKES])
            when = r.blocks[block, AT] + phases.rows[row, START]
            if when <= now:
                _rise(r, phases.rows, block, row, now)
            else:  # the alarm was set for the horizon, or the level rose since
                _wait(r, block, row, when, now)
        block = after


@jit_inline
def _expect_alarm(r: Any, rows: Any, later: Any, soon: Any) -> None:
    """Have the first block with an alarm fetched, and the phase that it wakes in once the block is
    there.
    """
    if later >= 0:
        fetch_ahead(r.blocks, later * BLOCK_COLUMNS)
    if soon >= 0:
        fetch_ahead(rows, r.blocks[soon, WAKES] * ROW_COLUMNS)


# The level


@jit_bare
def _raise_level(r: Any) -> None:
    """Put the level a little below the lowest victim since it was moved.

    Alarms set before are early, never late.
    """
    level = min(r.level[LOWEST], ENDLESSLY) * BELOW_VICTIMS
    if level > r.level[LEVEL]:
        r.level[LEVEL] = level
        r.counts[EPOCH] += 1
    r.level[LOWEST] = np.inf
    r.counts[SURPLUS] = 0


@jit_bare
def _lower_level(r: Any, phases: Any, now: int) -> None:
    """Put the level where a small share of the lines is above it, and look at all of them."""
    step = max(1, len(r.held) // SAMPLE)
    heights = r.heights[: (len(r.held) + step - 1) // step]
    for i in range(len(heights)):
        heights[i] = min(_look(r, phases, r.held[i * step], now), ENDLESSLY)
    sort(heights, len(heights))
    r.level[LEVEL], r.level[LOWEST] = (
        heights[int(len(heights) * (1 - AWAKE_SHARE))] * _JUST_BELOW,
        np.inf,
    )
    r.counts[EPOCH] += 1
    r.counts[FREE] = r.counts[SEATS] = 0
    r.bounds[:], r.wheel[:] = 0.0, NOBODY
    for place in range(len(r.held)):
        block = r.held[place]
        r.blocks[block, SEAT] = ASLEEP
        above = _look(r, phases, block, now) > r.level[LEVEL] * (1 - SLACK)
        row = r.lines[len(r.held), PHASE]
        if above:
            _rise(r, phases.rows, block, row, now)
        else:
            row = _above(r, phases.rows, row + 1)
            _wait(r, block, row, r.blocks[block, AT] + phases.rows[row, START], now)
    r.counts[SURPLUS] = 0


@jit_bare
def _look(r: Any, phases: Any, block: int, now: int) -> float:
    """How high a block's line is. It is left in the last row of lines."""
    lines, at = r.lines, len(r.held)
    lines[at, TOUCHED], lines[at, OWNER], lines[at, PHASE] = (
        r.blocks[block, AT],
        r.blocks[block, BY],
        -1,
    )
    enter_phase(lines, at, phases, now)
    return float(height(lines, at, now))
