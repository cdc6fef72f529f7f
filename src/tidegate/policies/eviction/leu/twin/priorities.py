"""Priorities: a reference's counts cut into phases, and which of its cells has the lowest.

Phases are worked out when somebody asks, not whenever a batch of counts came in: between two
questions there may be many.
"""

from __future__ import annotations

import numpy as np

from tidegate.compiled.jit import jit_inner
from tidegate.policies.eviction.leu.cells import SPAN
from tidegate.policies.eviction.leu.interval_table import BUCKETS, LONGEST
from tidegate.policies.eviction.leu.phases import LEASE, LEFT, START, WITHIN, cut
from tidegate.policies.eviction.leu.twin.layout import (
    BEST_CELL,
    BEST_TESLA,
    CHANGED,
    COUNTS,
    ENTRY_TOUCHES,
    ROOM,
    ROW,
    best_of,
    rows_of,
    words,
)

_LONGEST = np.array(LONGEST, np.int64)


@jit_inner
def least_tesla(level: int, number: int, now: int) -> int:
    """As in policies/eviction/leu/cells.py."""
    youngest = min(now, ((number + 1) << level) - 1)
    if level:
        youngest = min(youngest, (((now >> (level - 1)) - SPAN + 1) << (level - 1)) - 1)
    return now - youngest


@jit_inner
def phase_at(own: int, place: int, tesla: int, row: int) -> int:
    """The phase of so old a region, which is not before ``row``."""
    rows, last = rows_of(own, place), words(own, ROW)[2 * place + 1]
    while row < last and rows[row + 1, START] <= tesla:
        row += 1
    return row


@jit_inner
def consider(own: int, place: int, node: int, tesla: int, row: int) -> None:
    """Has this cell, which is in phase ``row``, the lowest priority in its place so far?"""
    rows, best, best_tesla = rows_of(own, place), best_of(own), words(own, BEST_TESLA)
    priority = 0.0
    if rises(own, place, row):
        priority = rows[row, WITHIN] / (float(rows[row, LEFT]) * float(rows[row, LEASE] - tesla))
    if priority < best[place] or (priority == best[place] and tesla > best_tesla[place]):
        best[place], best_tesla[place], words(own, BEST_CELL)[place] = priority, tesla, node


@jit_inner
def rises(own: int, place: int, row: int) -> bool:
    """Does priority rise with age in this phase? If no use is expected it is 0 throughout."""
    return rows_of(own, place)[row, WITHIN] != 0


@jit_inner
def refresh(own: int, place: int) -> None:
    """Work the phases of a reference out again, if its counts have changed."""
    changed = words(own, CHANGED)
    if not changed[place]:
        return
    changed[place] = 0
    room, counts = words(own, ROOM), words(own, COUNTS)
    interval, upto, hull = (
        room[:BUCKETS],
        room[BUCKETS : 2 * BUCKETS],
        room[2 * BUCKETS : 3 * BUCKETS + 1],
    )
    begin = room[3 * BUCKETS + 1 : 3 * BUCKETS + 3]
    points = total = 0
    for bucket in range(BUCKETS):
        seen = counts[place * BUCKETS + bucket]
        if seen:
            total += seen
            interval[points], upto[points] = _LONGEST[bucket], total
            points += 1
    begin[0], begin[1] = 0, points
    row, touches = (
        words(own, ROW)[2 * place : 2 * place + 2],
        words(own, ENTRY_TOUCHES)[place : place + 1],
    )
    cut(begin, interval, upto, touches, hull, row[:1], row[1:], rows_of(own, place))
