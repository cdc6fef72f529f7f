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
                           crossing         first of its phases that begins above it, and takes no part.

A touch moves one line; a miss plays again only the matches on the way from lines that moved, woke up or reached the
end of their phase, and from crossings. When nobody above the level is left, everyone is looked at once and the level
is put where a few are above it; that takes a look at each, and lasts for many misses.

Results are compared in whole numbers of two words, so they are exact. Levels and the times of crossings are in floating
point and rounded to the safe side: looking too early costs time, never a wrong victim. Equal priorities: the block
touched longest ago is the victim.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.jit import jit_inline, jit_inner
from tidegate.statistics.phases import LEASE, LEFT, START, WITHIN, waits

# columns of a line: touched at this time by this owner, whose phase this is (-1: to be found), and the line itself
TOUCHED, OWNER, PHASE, DEADLINE, SLOPE_N, SLOPE_K = range(6)
COLUMNS = 8  # a power of two, so that a line is a cache line

DUE, WINNER = range(2)  # columns of a node, side by side: a match reads both of both
LEVEL, EPOCH, LOOKS = range(3)  # in state: where the level is, how often it was moved, looks at lines since
FOREVER = 2**62
AWAKE_SHARE = 1 / 64  # of all lines, when the level is moved
SAMPLE = 512  # lines looked at to find the level
LOOKS_PER_LINE = 4  # so many, on average, and the level is moved: it has become too low

_SLACK = 2.0**-50  # more than what rounding can do to a product of two doubles and their difference
_JUST_BELOW = 1 - 2.0**-30  # so that at least one line is above the level, and by more than _SLACK
_HALF, _LOW = 32, 2**32 - 1


class Tournament(NamedTuple):
    """``lines``: by slot. ``nodes``: when each is to be looked at again and the slot that won; node 1 is the final, and
    winner -1 means that all below sleep. ``wake``: by owner, the tesla at which its lines rise above the level, and the
    epoch for which that was found.
    """

    lines: NDArray[np.int64]
    nodes: NDArray[np.int64]
    wake: NDArray[np.int64]
    state: NDArray[np.float64]


def tournament_of(slots: int, owners: int) -> Tournament:
    """A tournament in which nobody takes part yet."""
    nodes = np.tile(np.array([FOREVER, -1]), (2 << max(slots - 1, 0).bit_length(), 1))
    return Tournament(np.zeros((slots, COLUMNS), np.int64), nodes, np.full((owners, 2), -1, np.int64), np.zeros(3))


@jit_inline
def moved(slot: Any, t: Any, phases: Any, now: int, owner: Any) -> None:
    """The block in this slot was touched: a match that it won is to be played again; a sleeper sleeps on."""
    t.lines[slot, TOUCHED], t.lines[slot, OWNER], t.lines[slot, PHASE] = now, owner, -1
    node = slot + np.uint64(len(t.nodes) >> 1)
    when = np.int64(0) if t.nodes[node, WINNER] >= 0 else now + _sleep(t, phases, np.uint64(owner))
    while node and t.nodes[node, DUE] > when:  # a sleeper that is looked at too early, for an old touch, does no harm
        t.nodes[node, DUE] = when
        node >>= np.uint64(1)


@jit_inner
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


@jit_inner
def lowest(t: Any, phases: Any, now: int) -> int:
    """The slot of the victim. All slots must be in use."""
    if t.state[LOOKS] > LOOKS_PER_LINE * len(t.lines):
        _move_level(t, phases, now)
    _settle(t, phases, now)
    if t.nodes[1, WINNER] < 0 or _height(t.lines, t.nodes[1, WINNER], now) * (1 - _SLACK) <= t.state[LEVEL]:
        _move_level(t, phases, now)
        _settle(t, phases, now)
    return int(t.nodes[1, WINNER])


@jit_inner
def _settle(t: Any, phases: Any, now: int) -> None:
    """Play what is due: down to whatever is, and up again when nothing below is."""
    leaves = len(t.nodes) >> 1
    node = 1
    while t.nodes[1, DUE] <= now:
        if node >= leaves:
            _look(node - leaves, node, t, phases, now)
        elif t.nodes[2 * node, DUE] <= now:
            node *= 2
            continue
        elif t.nodes[2 * node + 1, DUE] <= now:
            node = 2 * node + 1
            continue
        else:
            _play(node, t.lines, t.nodes, now)
        node >>= 1


@jit_inner
def _look(slot: int, node: int, t: Any, phases: Any, now: int) -> None:
    """Is this line above the level? If not, when will it be?"""
    end = enter_phase(t.lines, slot, phases, now)
    t.state[LOOKS] += 1
    if _height(t.lines, slot, now) > t.state[LEVEL] * (1 - _SLACK):
        t.nodes[node, WINNER], t.nodes[node, DUE] = slot, end
    else:
        last = phases.last[t.lines[slot, OWNER]]
        row = _above(t, phases, t.lines[slot, PHASE] + 1, last)
        end = t.lines[slot, TOUCHED] + phases.rows[row, START] if row <= last else FOREVER
        t.nodes[node, WINNER], t.nodes[node, DUE] = -1, end


@jit_inner
def _move_level(t: Any, phases: Any, now: int) -> None:
    """Put the level where a small share of the lines is above it, and look at all of them."""
    slots = len(t.lines)
    step = max(1, slots // SAMPLE)
    heights = np.empty((slots + step - 1) // step)
    for i in range(len(heights)):
        enter_phase(t.lines, i * step, phases, now)
        heights[i] = min(_height(t.lines, i * step, now), 2.0**100)  # where no use is expected there is no height
    heights.sort()
    t.state[LEVEL] = heights[int(len(heights) * (1 - AWAKE_SHARE))] * _JUST_BELOW
    t.state[EPOCH] += 1
    t.state[LOOKS] = 0
    leaves = len(t.nodes) >> 1
    t.nodes[leaves : leaves + slots, DUE] = 0
    node = leaves
    while node > 1:  # whatever is above them is due, too
        node >>= 1
        t.nodes[node : (leaves + slots - 1) // (leaves // node) + 1, DUE] = 0


@jit_inline
def _height(lines: Any, slot: Any, now: int) -> Any:
    """1 / priority, as a double."""
    within = lines[slot, SLOPE_K]
    return float((lines[slot, DEADLINE] - now) * lines[slot, SLOPE_N]) / within if within else np.inf


@jit_inner
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


@jit_inner
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


@jit_inner
def _stands(lines: Any, a: int, b: int, now: int) -> int:
    """For how long a, which is lower now, certainly stays lower than b; at least 1, as time moves in whole steps."""
    a_n, a_k, b_n, b_k = lines[a, SLOPE_N], lines[a, SLOPE_K], lines[b, SLOPE_N], lines[b, SLOPE_K]
    closing = a_n * b_k - b_n * a_k
    if closing <= 0 or a_k == 0:
        return FOREVER >> 1
    x = float((lines[a, DEADLINE] - now) * a_n) * float(b_k)
    y = float((lines[b, DEADLINE] - now) * b_n) * float(a_k)
    return max(1, int(min((x - y - x * _SLACK) / closing, 2.0**40)))
