"""Victim search: find the block with the lowest LEU priority without looking at every block.

The victim is the block whose line is highest (priorities.py). A line only falls, until its
block is touched or its next phase begins:

    1/priority │ ╲                      Most lines are never the highest. A block whose line is
               │  ╲      │╲             below the level sleeps until the first of its phases that
               │   ╲     │ ╲            begins above the level: an alarm is set for that time. The
         level ┼ ─ ─╲─ ─ ┼ ─╲─ ─        whole sequence is known: a block that is touched before
               │     ╲   │   ╲          needs no alarm.
               │      ╲  │    ╲
               └─────────┴───────── now The few blocks above the level are awake. The height of a
                       alarm            line when last computed is a bound on its height now. Only
                                        the line with the highest bound is computed again: it is the
                                        victim, or it gets a lower bound.

If no line is above the level, all lines are computed once, and the level is put where a small share
of them is above it. The heights of victims hardly change in most sequences. So if many blocks woke
and were not evicted, the level is raised to a little below the lowest recent victim. That computes
no line: alarms set before are early, never late.

Bounds and levels are doubles, rounded to the safe side; lines closer to each other than rounding
can tell are compared exactly. Of equal priorities, the block touched longest ago is the victim.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.analysis.exact.leu.priorities import (
    BLOCK_COLUMNS,
    ENDLESS_HEIGHT,
    OWNER,
    PHASE,
    ROOT,
    SLACK,
    TOUCHED,
    enter_phase,
    height,
    highest_leaf,
    is_lower,
    max_tree,
    set_leaf,
)
from tidegate.compiled.intrinsics import fetch_ahead, sort
from tidegate.compiled.jit import jit_bare, jit_inline
from tidegate.policies.eviction.leu.phases import RARER, ROW_COLUMNS, START, WITHIN, waits

# further columns of a block: time of its next touch; row of the phase its alarm is set for, and the
# next block with an alarm at the same time; its frame or ABSENT; 1 if its line is above the level
AGAIN, WAKES, LINK, FRAME, AWAKE = range(3, BLOCK_COLUMNS)
ABSENT = NO_BLOCK = -1
# columns of wake: for each owner its first row above the level, found after so many lowerings
LOWERED, ROW = range(2)
WAKE_COLUMNS = 2
LEVEL, LOWEST_VICTIM = range(2)  # in levels
WOKEN = 1  # in counts, beside LOWERED
AWAKE_SHARE = 1 / 16  # of all lines, when the level is lowered
SAMPLE = 512  # lines computed to find that level
BELOW_VICTIMS = 15 / 16  # the level over the lowest victim, when it is raised
HORIZON = 4  # times as many touches as there are frames: no alarm is set later
AHEAD = 8  # touches; data needed then are fetched into the cache

_JUST_BELOW = 1 - 2.0**-30  # so that at least one line is above the level, and by more than SLACK


class Residents(NamedTuple):
    """Resident blocks and the state of the search; compiled functions get it by an ArrayTable.

    ``blocks``: a row per block, resident or not. ``held``: the block in each frame. ``bounds``: a
    tree of maxima over frames (priorities.py), whose leaves begin at ``first_leaf``. ``wheel``: the
    first block with an alarm at each time. ``levels``: the level, and the lowest victim since it
    was moved. ``counts``: how often it was lowered, and how many more blocks woke since it was
    moved than were evicted. ``wake``: a row per owner. ``heights``: room for those of a sample.
    """

    blocks: NDArray[np.int32]
    held: NDArray[np.int32]
    bounds: NDArray[np.float64]
    first_leaf: NDArray[np.int64]
    wheel: NDArray[np.int32]
    levels: NDArray[np.float64]
    counts: NDArray[np.int64]
    wake: NDArray[np.int32]
    heights: NDArray[np.float64]


def no_residents(blocks: int, capacity: int, owners: int) -> Residents:
    """Return an empty memory of ``capacity`` frames."""
    bounds, first_leaf = max_tree(capacity)
    return Residents(
        np.full((blocks, BLOCK_COLUMNS), ABSENT, np.int32),
        np.zeros(capacity, np.int32),
        bounds,
        np.array([first_leaf]),
        np.full(max(4, 1 << (HORIZON * capacity).bit_length()), NO_BLOCK, np.int32),
        np.full(2, np.inf),
        np.zeros(2, np.int64),
        np.zeros((owners, WAKE_COLUMNS), np.int32),
        np.zeros(2 * SAMPLE),
    )


@jit_inline
def fetch_touch(r: Any, block: Any, owner: Any) -> None:
    """Fetch what a coming touch of this block by this owner needs."""
    fetch_ahead(r.blocks, block * BLOCK_COLUMNS)
    fetch_ahead(r.wake, owner * WAKE_COLUMNS)


@jit_inline
def touch(r: Any, phases: Any, block: Any, owner: Any, now: int, again: int) -> None:
    """Note a touch of a resident block, whose next touch is at ``again``."""
    blocks = r.blocks
    if blocks[block, AWAKE] == 1:
        _sleep(r, block)
    blocks[block, TOUCHED], blocks[block, OWNER], blocks[block, AGAIN] = now, owner, again
    blocks[block, PHASE] = -1
    if r.levels[LEVEL] < np.inf:
        _wait(r, phases.rows, block, _first_above(r, phases, owner), now)


@jit_inline
def _first_above(r: Any, phases: Any, owner: Any) -> Any:
    """Return an owner's first row above the level. The last one found is a start: levels rise."""
    wake, lowered = r.wake, r.counts[LOWERED]
    known = wake[owner, LOWERED] == lowered
    row = _above(r, phases.rows, wake[owner, ROW] if known else phases.first[owner])
    wake[owner, LOWERED], wake[owner, ROW] = lowered, row
    return row


@jit_bare
def evict(r: Any, phases: Any, now: int) -> int:
    """Remove the victim and return its frame. All frames must be taken."""
    victim = _highest(r, phases.rows, now)
    if victim < 0:
        _lower_level(r, phases, now)
        victim = _highest(r, phases.rows, now)
    here = height(r.blocks, victim, phases.rows, now)
    r.levels[LOWEST_VICTIM] = min(r.levels[LOWEST_VICTIM], here)
    frame = r.blocks[victim, FRAME]
    r.blocks[victim, FRAME], r.blocks[victim, AWAKE] = ABSENT, 0
    r.counts[WOKEN] -= 1
    if r.counts[WOKEN] > len(r.held):
        _raise_level(r)
    return int(frame)


@jit_bare
def _highest(r: Any, rows: Any, now: int) -> int:
    """Return the block whose line is highest now; -1 if none is above the level.

    Other lines that are looked at get as bound their height at the next touch, the earliest time of
    the next search. It is lower than the best by more than rounding, so that no line is looked at
    twice.
    """
    blocks, bounds, first = r.blocks, r.bounds, r.first_leaf[0]
    best, level = -1, r.levels[LEVEL]
    least = level
    while bounds[ROOT] > least:
        block = r.held[highest_leaf(bounds, first) - first]
        here = height(blocks, block, rows, now) * (1 - SLACK)
        if here <= level or _is_over(blocks, block, rows, now):
            _sleep(r, block)
        elif best >= 0 and is_lower(blocks, best, block, rows, now):
            set_leaf(bounds, first + blocks[block, FRAME], height(blocks, block, rows, now + 1))
        else:
            if best >= 0:
                set_leaf(bounds, first + blocks[best, FRAME], height(blocks, best, rows, now + 1))
            set_leaf(bounds, first + blocks[block, FRAME], 0.0)
            best, least = block, here
    return best


@jit_inline
def _is_over(blocks: Any, block: Any, rows: Any, now: int) -> bool:
    """Return whether the phase of a block has ended. The last one never ends."""
    row = blocks[block, PHASE]
    return rows[row, WITHIN] != 0 and blocks[block, TOUCHED] + rows[row + 1, START] <= now


# Awake and asleep


@jit_bare
def _rise(r: Any, rows: Any, block: int, row: int, now: int) -> None:
    """Wake a block: it is in this phase, and above the level."""
    r.blocks[block, PHASE], r.blocks[block, AWAKE] = row, 1
    leaf = r.first_leaf[0] + r.blocks[block, FRAME]
    set_leaf(r.bounds, leaf, height(r.blocks, block, rows, now))
    r.counts[WOKEN] += 1


@jit_bare
def _sleep(r: Any, block: int) -> None:
    set_leaf(r.bounds, r.first_leaf[0] + r.blocks[block, FRAME], 0.0)
    r.blocks[block, AWAKE] = 0


@jit_inline
def _wait(r: Any, rows: Any, block: Any, row: Any, now: int) -> None:
    """Wake a block, now or by alarm, in its first phase from ``row`` on above the level."""
    row = _above(r, rows, row)
    if r.blocks[block, TOUCHED] + rows[row, START] <= now:
        _rise(r, rows, block, row, now)
        row = _next_above(r, rows, block)
    _set_alarm(r, rows, block, row, now)


@jit_inline
def _above(r: Any, rows: Any, row: Any) -> Any:
    """Return the first row from this one on that begins above the level.

    An owner's last row does: no use is expected there.
    """
    level = r.levels[LEVEL] * (1 - SLACK)
    while waits(rows, row) <= level:
        row = rows[row, RARER]
    return row


@jit_inline
def _next_above(r: Any, rows: Any, block: Any) -> Any:
    """Return the row after a block's phase that begins above the level; -1 if a touch ends it."""
    if _is_over(r.blocks, block, rows, r.blocks[block, AGAIN] - 1):
        return _above(r, rows, r.blocks[block, PHASE] + 1)
    return -1


@jit_inline
def _set_alarm(r: Any, rows: Any, block: Any, row: Any, now: int) -> None:
    """Set an alarm for the begin of this phase or for the horizon, unless a touch comes before."""
    when = r.blocks[block, TOUCHED] + rows[row, START]
    if row >= 0 and when < r.blocks[block, AGAIN]:
        last = len(r.wheel) - 1
        tick = min(when, now + last) & last
        r.blocks[block, WAKES], r.blocks[block, LINK] = row, r.wheel[tick]
        r.wheel[tick] = block


@jit_inline
def ring_alarms(r: Any, rows: Any, now: int) -> None:
    """Handle the alarms of this time. To be called at every touch, before anything else."""
    last = len(r.wheel) - 1
    _fetch_alarms(r, rows, r.wheel[(now + 2 * AHEAD) & last], r.wheel[(now + AHEAD) & last])
    block = r.wheel[now & last]
    r.wheel[now & last] = NO_BLOCK
    while block >= 0:
        after = r.blocks[block, LINK]
        if r.blocks[block, FRAME] != ABSENT:
            _wait(r, rows, block, r.blocks[block, WAKES], now)
        block = after


@jit_inline
def _fetch_alarms(r: Any, rows: Any, later: Any, soon: Any) -> None:
    """Fetch a block with an alarm, and the phase that it wakes in once the block is there."""
    if later >= 0:
        fetch_ahead(r.blocks, later * BLOCK_COLUMNS)
    if soon >= 0:
        fetch_ahead(rows, r.blocks[soon, WAKES] * ROW_COLUMNS)


# The level


@jit_bare
def _raise_level(r: Any) -> None:
    """Put the level a little below the lowest victim since it was moved, unless it is there."""
    below = min(r.levels[LOWEST_VICTIM], ENDLESS_HEIGHT) * BELOW_VICTIMS
    r.levels[LEVEL], r.levels[LOWEST_VICTIM] = max(r.levels[LEVEL], below), np.inf
    r.counts[WOKEN] = 0


@jit_bare
def _lower_level(r: Any, phases: Any, now: int) -> None:
    """Put the level where a small share of the lines is above it, and look at all of them."""
    blocks, rows = r.blocks, phases.rows
    step = max(1, len(r.held) // SAMPLE)
    heights = r.heights[: (len(r.held) + step - 1) // step]
    for i in range(len(heights)):
        enter_phase(blocks, r.held[i * step], phases, now)
        heights[i] = min(height(blocks, r.held[i * step], rows, now), ENDLESS_HEIGHT)
    sort(heights, len(heights))
    level = heights[int(len(heights) * (1 - AWAKE_SHARE))] * _JUST_BELOW
    r.levels[LEVEL], r.levels[LOWEST_VICTIM] = level, np.inf
    r.counts[LOWERED] += 1
    r.bounds[:], r.wheel[:] = 0.0, NO_BLOCK
    for frame in range(len(r.held)):
        block = r.held[frame]
        enter_phase(blocks, block, phases, now)
        blocks[block, AWAKE] = 0
        if height(blocks, block, rows, now) > level * (1 - SLACK):
            _rise(r, rows, block, blocks[block, PHASE], now)
        _set_alarm(r, rows, block, _next_above(r, rows, block), now)
    r.counts[WOKEN] = 0
