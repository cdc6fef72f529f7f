"""The table of access sites (policies/eviction/leu/interval_table.py): reuses are counted in
batches, and the coldest site is replaced.
"""

from __future__ import annotations

from tidegate.compiled.addresses import grid_at
from tidegate.compiled.jit import jit_apart
from tidegate.policies.eviction.leu.cells import LEVELS, SPAN
from tidegate.policies.eviction.leu.interval_table import BUCKETS
from tidegate.policies.eviction.leu.twin.cells import advance, pour
from tidegate.policies.eviction.leu.twin.layout import (
    AFTER,
    BATCH,
    BEST_AT,
    CHANGED,
    COUNTS,
    ENTRIES,
    ENTRY,
    ENTRY_TOUCHES,
    FORGET,
    MEMBERS,
    PENDING,
    PLACE,
    PLACE_OF,
    PLENTY,
    REFERENCES,
    REPLACED,
    TABLE,
    WAITING,
    cell,
    filled_cells,
    nodes,
    part,
    place_of,
    scalars,
    time_of,
    words,
)


@jit_apart
def _bucket_of(interval: int) -> int:
    if interval < 2:
        return max(0, interval)
    power = 0
    while interval >> (power + 1):
        power += 1
    return min(2 * power + (interval >> (power - 1) & 1), BUCKETS - 1)


@jit_apart
def saw(own: int, reference: int, reuses: int, interval: int) -> None:
    scalar = scalars(own)
    n = scalar[PENDING]
    waiting = grid_at(part(own, WAITING), PLENTY, 3)
    waiting[n, 0], waiting[n, 1], waiting[n, 2] = reference, reuses, _bucket_of(interval)
    scalar[PENDING] = n + 1
    if n + 1 == scalar[BATCH]:
        _take_in(own)


@jit_apart
def _take_in(own: int) -> None:
    scalar, changed, best_at = scalars(own), words(own, CHANGED), words(own, BEST_AT)
    waiting = grid_at(part(own, WAITING), PLENTY, 3)
    for i in range(scalar[PENDING]):
        reference, reuses = waiting[i, 0], waiting[i, 1]
        place = place_of(own, reference)
        if place == scalar[TABLE]:
            place = _admit(own, reference)
        touches, counts = words(own, ENTRY_TOUCHES), words(own, COUNTS)
        touches[place] += max(reuses, 1)
        counts[place * BUCKETS + waiting[i, 2]] += reuses
        if scalar[FORGET] and touches[place] >= scalar[FORGET]:
            touches[place] //= 2
            counts[place * BUCKETS : (place + 1) * BUCKETS] //= 2
        changed[place], best_at[place] = 1, -1
    scalar[PENDING] = 0


@jit_apart
def _admit(own: int, reference: int) -> int:
    scalar, places = scalars(own), words(own, PLACE_OF)
    entry, touches = words(own, ENTRY), words(own, ENTRY_TOUCHES)
    place = scalar[ENTRIES]
    if place < scalar[TABLE]:
        scalar[ENTRIES] += 1
    else:
        place = 0
        for other in range(scalar[TABLE]):
            if touches[other] < touches[place]:
                place = other
        places[entry[place] & (REFERENCES - 1)] = scalar[TABLE]
        touches[place] = 0
        words(own, COUNTS)[place * BUCKETS : (place + 1) * BUCKETS] = 0
        scalar[REPLACED] += 1
        _to_others(own, place)
    entry[place] = reference
    places[reference & (REFERENCES - 1)] = place
    return int(place)


@jit_apart
def _to_others(own: int, place: int) -> None:
    """Move the regions of a replaced access site to those without an entry."""
    others, now, node_of = scalars(own)[TABLE], time_of(own), nodes(own)
    filled, members, best_at = filled_cells(own), words(own, MEMBERS), words(own, BEST_AT)
    advance(own, place)
    advance(own, others)
    for level in range(LEVELS):
        for number in range(max(0, (now >> level) - SPAN + 1), (now >> level) + 1):
            if filled[place, level] & (1 << number % SPAN):
                node = cell(own, place, level, number)
                region = node_of[node, AFTER]
                while region != node:
                    node_of[region, PLACE] = others
                    region = node_of[region, AFTER]
                pour(node_of, node, cell(own, others, level, number))
        filled[others, level] |= filled[place, level]
        filled[place, level] = 0
    members[others] += members[place]
    members[place] = 0
    best_at[others] = best_at[place] = -1
