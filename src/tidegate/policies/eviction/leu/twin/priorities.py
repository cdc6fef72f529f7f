"""Priorities: the phases of an access site, from its counts, and its cell with the lowest priority.

Phases are computed when a victim is sought, not after each batch of counts: there may be many
batches in between.
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
    """Return the least TESLA of a cell, as in policies/eviction/leu/cells.py."""
    youngest = min(now, ((number + 1) << level) - 1)
    if level:
        youngest = min(youngest, (((now >> (level - 1)) - SPAN + 1) << (level - 1)) - 1)
    return now - youngest


@jit_inner
def phase_at(own: int, place: int, tesla: int, row: int) -> int:
    """Return the phase of a region of this TESLA, which is not before ``row``."""
    rows, last = rows_of(own, place), words(own, ROW)[2 * place + 1]
    while row < last and rows[row + 1, START] <= tesla:
        row += 1
    return row


@jit_inner
def consider(own: int, place: int, node: int, tesla: int, row: int) -> None:
    """Note a cell in phase ``row`` if it has the lowest priority in its place so far."""
    rows, best, best_tesla = rows_of(own, place), best_of(own), words(own, BEST_TESLA)
    priority = 0.0
    if rises(own, place, row):
        priority = rows[row, WITHIN] / (float(rows[row, LEFT]) * float(rows[row, LEASE] - tesla))
    if priority < best[place] or (priority == best[place] and tesla > best_tesla[place]):
        best[place], best_tesla[place], words(own, BEST_CELL)[place] = priority, tesla, node


@jit_inner
def rises(own: int, place: int, row: int) -> bool:
    """Return whether the priority rises in this phase. If no use is expected, it stays 0."""
    return rows_of(own, place)[row, WITHIN] != 0


@jit_inner
def refresh(own: int, place: int) -> None:
    """Compute the phases of an access site again if its counts have changed."""
    changed = words(own, CHANGED)
    if not changed[place]:
        return
    changed[place] = 0
    room, counts = words(own, ROOM), words(own, COUNTS)
    interval, upto = room[:BUCKETS], room[BUCKETS : 2 * BUCKETS]
    hull, begin = room[2 * BUCKETS : 3 * BUCKETS + 1], room[3 * BUCKETS + 1 : 3 * BUCKETS + 3]
    points = total = 0
    for bucket in range(BUCKETS):
        seen = counts[place * BUCKETS + bucket]
        if seen:
            total += seen
            interval[points], upto[points] = _LONGEST[bucket], total
            points += 1
    begin[0], begin[1] = 0, points
    row = words(own, ROW)[2 * place : 2 * place + 2]
    touches = words(own, ENTRY_TOUCHES)[place : place + 1]
    cut(begin, interval, upto, touches, hull, row[:1], row[1:], rows_of(own, place))
