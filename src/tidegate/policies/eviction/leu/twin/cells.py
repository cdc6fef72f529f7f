"""Cells, as in policies/eviction/leu/cells.py, in rings. A level's cells are found by their number
modulo SPAN.

FILLED has a bit for each cell that may hold regions. The lowest of a place is valid as long as
neither the time nor anything in that place changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.jit import jit_inner
from tidegate.policies.eviction.leu.cells import LEVELS, SPAN
from tidegate.policies.eviction.leu.twin.layout import (
    ABSENT,
    AFTER,
    AT,
    BEFORE,
    BEST_AT,
    BEST_CELL,
    BEST_TESLA,
    ENTRIES,
    LAST,
    MEMBERS,
    PLACE,
    REFERENCE,
    ROW,
    TABLE,
    best_of,
    cell,
    filled_cells,
    nodes,
    place_of,
    scalars,
    time_of,
    words,
)
from tidegate.policies.eviction.leu.twin.priorities import (
    consider,
    least_tesla,
    phase_at,
    refresh,
    rises,
)


@jit_inner
def append(link: Any, node: int, region: int) -> None:
    """Append a region that is in no ring to the ring that begins with this node."""
    last = link[node, BEFORE]
    link[last, AFTER], link[region, BEFORE] = region, last
    link[region, AFTER], link[node, BEFORE] = node, region


@jit_inner
def remove(link: Any, region: int) -> None:
    a, b = link[region, AFTER], link[region, BEFORE]
    link[b, AFTER], link[a, BEFORE] = a, b


@jit_inner
def pour(link: Any, node: int, into: int) -> None:
    """Append all of one ring to another."""
    first, last = link[node, AFTER], link[node, BEFORE]
    if first != node:
        end = link[into, BEFORE]
        link[end, AFTER], link[first, BEFORE] = first, end
        link[last, AFTER], link[into, BEFORE] = into, last
        link[node, AFTER] = link[node, BEFORE] = node


@jit_inner
def enter(own: int, region: int) -> None:
    """Add a region to the cell of its access site and its last touch."""
    node_of, now = nodes(own), time_of(own)
    place, last = place_of(own, node_of[region, REFERENCE]), node_of[region, LAST]
    advance(own, place)
    level = 0
    while (now >> level) - (last >> level) >= SPAN:
        level += 1
    node = cell(own, place, level, last >> level)
    if words(own, BEST_AT)[place] == now and node_of[node, AFTER] == node:
        tesla = least_tesla(level, last >> level, now)
        consider(own, place, node, tesla, phase_at(own, place, tesla, words(own, ROW)[2 * place]))
    append(node_of, node, region)
    filled_cells(own)[place, level] |= 1 << (last >> level) % SPAN
    node_of[region, PLACE] = place
    words(own, MEMBERS)[place] += 1


@jit_inner
def leave(own: int, region: int) -> None:
    node_of, best_at = nodes(own), words(own, BEST_AT)
    remove(node_of, region)
    place = node_of[region, PLACE]
    words(own, MEMBERS)[place] -= 1
    node_of[region, PLACE] = ABSENT
    best = words(own, BEST_CELL)[place]
    if best_at[place] == time_of(own) and node_of[best, AFTER] == best:
        best_at[place] = -1  # the lowest cell is empty now


@jit_inner
def advance(own: int, place: int) -> None:
    """Set the time: move old cells into those of the next level, the oldest first."""
    at, now, link, filled = words(own, AT)[place], time_of(own), nodes(own), filled_cells(own)
    level = 0
    while level < LEVELS - 1 and now >> level != at >> level:
        if filled[place, level]:
            oldest = max(0, (at >> level) - SPAN + 1)
            youngest = min(at >> level, (now >> level) - SPAN)
            for number in range(oldest, youngest + 1):
                bit = 1 << number % SPAN
                if filled[place, level] & bit:
                    into = cell(own, place, level + 1, number >> 1)
                    pour(link, cell(own, place, level, number), into)
                    filled[place, level] &= ~bit
                    filled[place, level + 1] |= 1 << (number >> 1) % SPAN
        level += 1
    words(own, AT)[place] = now


@jit_inner
def _find_best(own: int, place: int) -> None:
    """Find the cell with the lowest priority in this place: the youngest with regions, of one of
    the phases.
    """
    refresh(own, place)
    now, row, link, filled = time_of(own), words(own, ROW)[2 * place], nodes(own), filled_cells(own)
    best_of(own)[place], words(own, BEST_TESLA)[place] = np.inf, -1
    settled = -1  # the phase whose lowest is known
    for level in range(LEVELS):
        if filled[place, level] == 0:
            continue
        for number in range(now >> level, max(-1, (now >> level) - SPAN), -1):
            bit = 1 << number % SPAN
            if filled[place, level] & bit == 0:
                continue
            tesla, node = least_tesla(level, number, now), cell(own, place, level, number)
            row = phase_at(own, place, tesla, row)
            if row == settled:
                continue
            if link[node, AFTER] == node:
                filled[place, level] &= ~bit
                continue
            consider(own, place, node, tesla, row)
            settled = row if rises(own, place, row) else -1
    words(own, BEST_AT)[place] = now


@jit_inner
def lowest(own: int) -> int:
    """Return the region with the lowest priority; -1 if there is none."""
    scalar, now, best = scalars(own), time_of(own), best_of(own)
    best_tesla, best_at = words(own, BEST_TESLA), words(own, BEST_AT)
    found = -1
    for i in range(scalar[ENTRIES] + 1):
        place = i if i < scalar[ENTRIES] else scalar[TABLE]
        if words(own, MEMBERS)[place] == 0:
            continue
        if best_at[place] != now:
            advance(own, place)
            _find_best(own, place)
        if (
            found < 0
            or best[place] < best[found]
            or (best[place] == best[found] and best_tesla[place] > best_tesla[found])
        ):
            found = place
    return int(nodes(own)[words(own, BEST_CELL)[found], AFTER]) if found >= 0 else -1
