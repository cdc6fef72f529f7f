"""Tournament: who has the lowest LEU priority, without asking everyone at every miss.

Turned upside down, 1 / priority = (deadline - now) · N / K is a straight line that falls with time, as long as a block
stays in one phase (see phases.py). The victim is the block whose line is highest:

    1/priority │ ╲                          Of the blocks that share a distribution and a phase, all lines are parallel
               │  ╲   a ╲                   and the last touched is the highest: only the youngest behind each lease
               │ b ╲     ╲                  boundary can be the victim. Blocks of different distributions cross: a
               │ ╲  ╲     ╲                 falls more steeply than b, and who is higher now is known to stay so until the
               │    ╲╲     ╲                crossing. So a tree of matches is kept, and in every node the time until
               │        ╲    ╲              which its result, and those below it, are certain to stand (a kinetic
         level ┼ ─ ─ ─ ─ ─ ─ ─╲─ ─          tournament; Basch, Guibas & Hershberger, SODA 1997).
               │   asleep      ╲
               └───────────×────┴── now     Most lines never come near the top. A line below the level sleeps until the
                           crossing         first of its phases that begins above it, and has no seat in the tree.

A touch moves one line; a miss plays again only the matches on the way from seats whose line moved or reached the end of
its phase, and from crossings. Sleepers wait on a wheel of alarms. A touch makes them sleep longer, and the alarm that
rings too early finds that out: so most touches change nothing but the line. When nobody above the level is left, everyone
is looked at once and the level is put where a few are above it; that takes a look at each, and lasts for many misses.

Results are compared in whole numbers of two words, so they are exact. Levels and the times of crossings are in floating
point and rounded to the safe side: looking too early costs time, never a wrong victim. Equal priorities: the block
touched longest ago is the victim.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.jit import jit_bare, jit_inline
from tidegate.sorting import sort
from tidegate.statistics.phases import LEASE, LEFT, START, WITHIN, waits

# columns of a line: touched at this time by this owner, whose phase this is (-1: to be found), the line itself, its
# seat, and when a sleeper is looked at
TOUCHED, OWNER, PHASE, DEADLINE, SLOPE_N, SLOPE_K, SEAT, ALARM = range(8)
COLUMNS = 8  # a power of two, so that a line is a cache line
# instead of a seat: asleep until its first phase above the level, or, that one having passed, until a later one
ASLEEP, DOZING = -1, -2

DUE, WINNER = range(2)  # columns of a node, side by side: a match reads both of both
LEVEL, EPOCH, LOOKS, FREE, SEATS, RUNG = range(6)  # in state: see Tournament
AFTER, BEFORE = range(2)
FOREVER = 2**62
AWAKE_SHARE = 1 / 64  # of all lines, when the level is moved
SAMPLE = 512  # lines looked at to find the level
LOOKS_PER_LINE = 4  # so many, on average, and the level is moved: it has become too low
TICK = 2  # an alarm rings at most 2² touches early
HORIZON = 4  # times as many touches as there are lines: no alarm is set later

_SLACK = 2.0**-50  # more than what rounding can do to a product of two doubles and their difference
_JUST_BELOW = 1 - 2.0**-30  # so that at least one line is above the level, and by more than _SLACK
_HALF, _LOW = 32, 2**32 - 1


class Tournament(NamedTuple):
    """``lines``: by slot. ``nodes``: when each is to be looked at again and the slot that won, -1 if nobody plays below
    it; of a tree for all lines only the part over the seats in use is played. ``free``: seats that were given up.
    ``ring``: after and before each line on the wheel, and each tick of the wheel. ``wake``: by owner, the tesla at which
    its lines rise above the level, and the epoch for which that was found. ``state``: where the level is, how often it was
    moved, looks at lines since, how many seats are free and how many were ever taken, the tick that rang last.
    ``heights``: room for those of a sample. Compiled functions get all this by a Reference.
    """

    lines: NDArray[np.int64]
    nodes: NDArray[np.int64]
    free: NDArray[np.int64]
    ring: NDArray[np.int64]
    wake: NDArray[np.int64]
    state: NDArray[np.float64]
    heights: NDArray[np.float64]


def tournament_of(slots: int, owners: int) -> Tournament:
    """A tournament in which nobody takes part yet."""
    nodes = np.tile(np.array([FOREVER, -1]), (2 << max(slots - 1, 0).bit_length(), 1))
    ticks = max(4, 1 << (HORIZON * slots >> TICK).bit_length())
    ring = np.repeat(np.arange(slots + ticks), 2).reshape(-1, 2)
    lines = np.zeros((slots, COLUMNS), np.int64)
    lines[:, SEAT], lines[:, ALARM] = ASLEEP, FOREVER
    free, wake = np.zeros(slots, np.int64), np.full((owners, 2), -1, np.int64)
    return Tournament(lines, nodes, free, ring, wake, np.zeros(6), np.zeros(2 * SAMPLE))


@jit_inline
def moved(slot: Any, t: Any, phases: Any, now: int, owner: Any) -> None:
    """The block in this slot was touched: a match that it won is to be played again; a sleeper sleeps on."""
    lines = t.lines
    seat = lines[slot, SEAT]
    if seat >= 0:
        node = seat + (len(t.nodes) >> 1)
        while node and t.nodes[node, DUE] > 0:
            t.nodes[node, DUE] = 0
            node >>= 1
    elif t.state[EPOCH] > 0 and (seat == DOZING or lines[slot, OWNER] != owner):
        when = now + _sleep(t, phases, np.int64(owner))
        if when < lines[slot, ALARM]:
            _set_alarm(t, np.int64(slot), now, when)
        lines[slot, SEAT] = ASLEEP
    lines[slot, TOUCHED], lines[slot, OWNER], lines[slot, PHASE] = now, owner, -1


@jit_bare
def _sleep(t: Any, phases: Any, owner: Any) -> int:
    """How long after a touch the owner's lines stay below the level."""
    if t.wake[owner, 1] != t.state[EPOCH]:
        row = _above(t, phases, phases.first[owner], phases.last[owner])
        t.wake[owner, 0] = phases.rows[row, START] if row <= phases.last[owner] else FOREVER >> 1
        t.wake[owner, 1] = np.int64(t.state[EPOCH])
    return int(t.wake[owner, 0])


@jit_inline
def _above(t: Any, phases: Any, row: Any, last: Any) -> Any:
    """The first row, from this one on, that begins above the level."""
    level = t.state[LEVEL] * (1 - _SLACK)
    while row <= last and waits(phases.rows, row) <= level:
        row = np.int64(phases.rarer[row])
    return row


@jit_bare
def lowest(t: Any, phases: Any, now: int) -> int:
    """The slot of the victim. All slots must be in use."""
    if t.state[EPOCH] == 0 or t.state[LOOKS] > LOOKS_PER_LINE * len(t.lines):
        _move_level(t, phases, now)
    final = _settle(t, phases, now)
    if t.nodes[final, WINNER] < 0 or _height(t.lines, t.nodes[final, WINNER], now) * (1 - _SLACK) <= t.state[LEVEL]:
        _move_level(t, phases, now)
        final = _settle(t, phases, now)
    return int(t.nodes[final, WINNER])


@jit_bare
def _settle(t: Any, phases: Any, now: int) -> int:
    """Look at whom an alarm rings for, then play what is due: down to whatever is, and up again when nothing below is.

    Answers the node of the final: the lowest one over all seats that were ever taken.
    """
    _ring(t, phases, now)
    leaves = len(t.nodes) >> 1
    final, seats = leaves, 1
    while seats < t.state[SEATS]:
        final >>= 1
        seats *= 2
    node = final
    while t.nodes[final, DUE] <= now:
        if node >= leaves:
            _look(t.nodes[node, WINNER], t, phases, now)
        elif t.nodes[2 * node, DUE] <= now:
            node *= 2
            continue
        elif t.nodes[2 * node + 1, DUE] <= now:
            node = 2 * node + 1
            continue
        else:
            _play(node, t.lines, t.nodes, now)
        if node != final:
            node >>= 1
    return final


@jit_bare
def _look(slot: int, t: Any, phases: Any, now: int) -> None:
    """Is this line above the level? Then it needs a seat; if not, an alarm for when it will be."""
    lines = t.lines
    end = enter_phase(lines, slot, phases, now)
    t.state[LOOKS] += 1
    seat = lines[slot, SEAT]
    if _height(lines, slot, now) > t.state[LEVEL] * (1 - _SLACK):
        if seat < 0:
            seat = _take_seat(t, slot)
        t.nodes[seat + (len(t.nodes) >> 1), DUE] = end
        return
    if seat >= 0:
        _give_up_seat(t, seat)
    owner = lines[slot, OWNER]
    row = _above(t, phases, lines[slot, PHASE] + 1, phases.last[owner])
    lines[slot, SEAT] = ASLEEP if lines[slot, TOUCHED] + _sleep(t, phases, owner) > now else DOZING
    _set_alarm(t, slot, now, lines[slot, TOUCHED] + phases.rows[row, START])  # the last phase is above any level


# Seats


@jit_bare
def _take_seat(t: Any, slot: int) -> int:
    """Give a line a seat, one that was given up if there is any; all matches above it are to be played."""
    if t.state[FREE] > 0:
        t.state[FREE] -= 1
        seat = int(t.free[int(t.state[FREE])])
    else:
        seat = int(t.state[SEATS])
        t.state[SEATS] += 1
    t.lines[slot, SEAT], t.lines[slot, ALARM] = seat, FOREVER
    node = seat + (len(t.nodes) >> 1)
    t.nodes[node, WINNER] = slot
    while node > 1:
        node >>= 1
        t.nodes[node, DUE] = 0
    return seat


@jit_bare
def _give_up_seat(t: Any, seat: int) -> None:
    leaf = seat + (len(t.nodes) >> 1)
    t.nodes[leaf, WINNER], t.nodes[leaf, DUE] = -1, FOREVER
    t.free[int(t.state[FREE])] = seat
    t.state[FREE] += 1


# Alarms


@jit_bare
def _set_alarm(t: Any, slot: int, now: int, when: int) -> None:
    """Look at this sleeper again then, or at the horizon."""
    slots = len(t.lines)
    ticks = len(t.ring) - slots
    when = max(now + 1, min(when, now + ((ticks - 2) << TICK)))
    _unlink(t.ring, slot)
    tick = slots + ((when >> TICK) & (ticks - 1))
    last = t.ring[tick, BEFORE]
    t.ring[last, AFTER], t.ring[slot, BEFORE] = slot, last
    t.ring[slot, AFTER], t.ring[tick, BEFORE] = tick, slot
    t.lines[slot, ALARM] = when


@jit_bare
def _unlink(ring: Any, slot: int) -> None:
    a, b = ring[slot, AFTER], ring[slot, BEFORE]
    ring[b, AFTER], ring[a, BEFORE] = a, b
    ring[slot, AFTER] = ring[slot, BEFORE] = slot


@jit_bare
def _ring(t: Any, phases: Any, now: int) -> None:
    """Look at every sleeper whose alarm has come."""
    slots, ring = len(t.lines), t.ring
    ticks = len(ring) - slots
    for tick in range(int(t.state[RUNG]), (now >> TICK) + 1):
        node = slots + (tick & (ticks - 1))
        slot = ring[node, AFTER]
        while slot != node:
            following = ring[slot, AFTER]
            if t.lines[slot, ALARM] <= now:
                _unlink(ring, slot)
                _look(slot, t, phases, now)
            slot = following
    t.state[RUNG] = now >> TICK


@jit_bare
def _move_level(t: Any, phases: Any, now: int) -> None:
    """Put the level where a small share of the lines is above it, and look at all of them."""
    slots = len(t.lines)
    step = max(1, slots // SAMPLE)
    heights = t.heights[: (slots + step - 1) // step]
    for i in range(len(heights)):
        enter_phase(t.lines, i * step, phases, now)
        heights[i] = min(_height(t.lines, i * step, now), 2.0**100)  # where no use is expected there is no height
    sort(heights, len(heights))
    t.state[LEVEL] = heights[int(len(heights) * (1 - AWAKE_SHARE))] * _JUST_BELOW
    t.state[EPOCH] += 1
    t.state[FREE] = t.state[SEATS] = 0
    t.state[RUNG] = now >> TICK
    t.nodes[:, DUE], t.nodes[:, WINNER] = FOREVER, -1
    for node in range(len(t.ring)):
        t.ring[node, AFTER] = t.ring[node, BEFORE] = node
    for slot in range(slots):
        t.lines[slot, SEAT] = ASLEEP
        _look(slot, t, phases, now)
    t.state[LOOKS] = 0


@jit_inline
def _height(lines: Any, slot: Any, now: int) -> Any:
    """1 / priority, as a double."""
    within = lines[slot, SLOPE_K]
    return float((lines[slot, DEADLINE] - now) * lines[slot, SLOPE_N]) / within if within else np.inf


@jit_bare
def enter_phase(lines: Any, slot: int, phases: Any, now: int) -> int:
    """Give a line the phase of this moment; when the next one begins."""
    owner, touched, rows = lines[slot, OWNER], lines[slot, TOUCHED], phases.rows
    phase, last, tesla = max(lines[slot, PHASE], phases.first[owner]), phases.last[owner], now - touched
    step = 1
    while phase + step <= last and rows[phase + step, START] <= tesla:  # in growing steps, then in halves
        phase += step
        step *= 2
    while step:
        if phase + step <= last and rows[phase + step, START] <= tesla:
            phase += step
        step >>= 1
    lines[slot, PHASE], lines[slot, DEADLINE] = phase, touched + rows[phase, LEASE]
    lines[slot, SLOPE_N], lines[slot, SLOPE_K] = rows[phase, LEFT], rows[phase, WITHIN]
    return int(touched + rows[phase + 1, START]) if phase < last else FOREVER


@jit_inline
def _play(node: Any, lines: Any, nodes: Any, now: int) -> None:
    a, b = nodes[2 * node, WINNER], nodes[2 * node + 1, WINNER]
    soonest = min(nodes[2 * node, DUE], nodes[2 * node + 1, DUE])
    if a < 0 or b < 0:
        nodes[node, WINNER] = max(a, b)
    else:
        if lower(lines, b, a, now):
            a, b = b, a
        nodes[node, WINNER] = a
        soonest = min(soonest, now + _stands(lines, a, b, now))
    nodes[node, DUE] = soonest


@jit_bare
def lower(lines: Any, a: int, b: int, now: int) -> bool:
    """Is line a's priority lower than b's? (deadline - now) · N is below 2⁶² and K below 2³¹: two words hold all."""
    x, y = (lines[a, DEADLINE] - now) * lines[a, SLOPE_N], (lines[b, DEADLINE] - now) * lines[b, SLOPE_N]
    a_k, b_k = lines[a, SLOPE_K], lines[b, SLOPE_K]
    x_low, y_low = (x & _LOW) * b_k, (y & _LOW) * a_k
    x_high, y_high = (x >> _HALF) * b_k + (x_low >> _HALF), (y >> _HALF) * a_k + (y_low >> _HALF)
    if x_high != y_high:
        return bool(x_high > y_high)
    x_low, y_low = x_low & _LOW, y_low & _LOW
    if x_low != y_low:
        return bool(x_low > y_low)
    return bool(lines[a, TOUCHED] < lines[b, TOUCHED])


@jit_bare
def _stands(lines: Any, a: int, b: int, now: int) -> int:
    """For how long a, which is lower now, certainly stays lower than b; at least 1, as time moves in whole steps."""
    a_n, a_k, b_n, b_k = lines[a, SLOPE_N], lines[a, SLOPE_K], lines[b, SLOPE_N], lines[b, SLOPE_K]
    closing = a_n * b_k - b_n * a_k
    if closing <= 0 or a_k == 0:
        return FOREVER >> 1
    x = float((lines[a, DEADLINE] - now) * a_n) * float(b_k)
    y = float((lines[b, DEADLINE] - now) * b_n) * float(a_k)
    return max(1, int(min((x - y - x * _SLACK) / closing, 2.0**40)))
