"""LEU's compiled twin: the same table, cells and sampler on arrays (see eviction/leu.py, rimm.py, cells.py, intervals.py).

A cell is a ring of links with a node of its own, so a region is taken out without asking where it is, and a whole cell
is appended to another at once. The cells of a level are found by number modulo SPAN; FILLED has a bit for each that may
hold somebody. The lowest of a reference is kept as long as neither time nor anything in its place has moved.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.jit import jit_inner, jit_policy
from tidegate.mechanism.events import EVENT_BITS, EVICTION, VICTIM
from tidegate.mechanism.header import (
    LAST_REFERENCE,
    LAST_TOUCH,
    OWN,
    PAGES_PER_REGION,
    PINNED,
    REGION_TOUCHES,
    REGIONS,
    TOUCHES,
    TURN,
)
from tidegate.policies.cells import LEVELS, SPAN
from tidegate.policies.compiled import Twin, floats_at, grid_at, shorts_at, words_at
from tidegate.policies.intervals import BUCKETS, LONGEST
from tidegate.statistics.phases import ENDLESS, LEASE, LEFT, START, WITHIN, cut

_LONGEST = np.array(LONGEST, np.int64)
_REFERENCES = 1 << 16
_ROWS = 2 * BUCKETS + 1

# The twin's words: scalars, the offsets of the parts, the parts. [places]: for each entry of the table, and the others.
TABLE, BATCH, SAMPLE, PENDING, ENTRIES, REPLACED = range(6)
_SCALARS = 8
(
    LINK,  # [regions, cells, arrivals; 2] rings: AFTER and BEFORE
    KNOWN,  # [regions; 8] what is known of a region, in one cache line: see below
    AT,  # [places] the time to which its cells were brought
    MEMBERS,  # [places] how many regions are there
    FILLED,  # [places; levels] which cells may hold somebody
    ENTRY,  # [places] the reference
    PLACE_OF,  # [references] its place in the table
    ENTRY_TOUCHES,  # [places]
    COUNTS,  # [places; buckets]
    CHANGED,  # [places] by the batch that is taken in
    ROWS,  # [places; rows; 4] phases
    ROW,  # [places; 2] the first and last of them
    BEST,  # [places] the lowest priority, as a double
    BEST_TESLA,  # [places] and of which cell
    BEST_CELL,
    BEST_AT,  # [places] when that was found; -1: it has changed since
    WAITING,  # [batch; 3] reuses that are not in the table yet
    MOMENTS,  # [pages per region; 2]
    ROOM,  # for working phases out
) = range(19)
_PARTS = 24
AFTER, BEFORE = range(2)
PLACE, LAST, REFERENCE, COUNT, WHEN = range(5)  # columns of KNOWN; COUNT: touches, WHEN: it faulted
_COLUMNS = 8
ABSENT, ARRIVING = -1, -2  # instead of a place in the table
_PLENTY = 1 << 40  # rows: nobody asks how many there are


def _prepare(policy: Any, regions: int, pages: int) -> NDArray[np.int64]:
    """The twin's words at the start of a run."""
    places = policy.table + 1
    nodes = regions + places * LEVELS * SPAN + 1
    sizes = [
        nodes * 2, regions * _COLUMNS, places, places, places * LEVELS, places, _REFERENCES, places, places * BUCKETS,
        places, places * _ROWS * 4, places * 2, places, places, places, places, policy.batch * 3, pages * 2, 4 * BUCKETS,
    ]  # fmt: skip
    offsets = _SCALARS + _PARTS + np.cumsum([0, *sizes])
    own = np.zeros(offsets[-1], np.int64)
    own[[TABLE, BATCH, SAMPLE]] = policy.table, policy.batch, math.ceil(policy.sample * 2**53)
    own[_SCALARS : _SCALARS + len(sizes)] = OWN + offsets[:-1]
    part = [own[a:b] for a, b in pairwise(offsets)]
    part[LINK][:] = np.repeat(np.arange(nodes), 2)
    part[KNOWN][PLACE::_COLUMNS] = ABSENT
    part[PLACE_OF][:] = policy.table
    part[BEST_AT][:] = -1
    rows = part[ROWS].reshape(places, _ROWS, 4)
    rows[:, 0, LEASE], rows[:, 0, LEFT] = ENDLESS, 1  # no use is expected of anyone yet
    return own


def _counted(policy: Any, own: NDArray[np.int64]) -> None:
    policy.counted = {"references": int(own[ENTRIES]), "references replaced": int(own[REPLACED])}


@jit_inner
def _scalar(own: int) -> Any:
    return words_at(own + 8 * OWN, _SCALARS)


@jit_inner
def _part(own: int, part: int) -> int:
    """The address of a part. Functions take ``own`` and look up what they need: passing all arrays on takes longer."""
    return int(own + 8 * words_at(own + 8 * (OWN + _SCALARS), _PARTS)[part])


@jit_inner
def _words(own: int, part: int) -> Any:
    return words_at(_part(own, part), _PLENTY)


@jit_inner
def _links(own: int) -> Any:
    return grid_at(_part(own, LINK), _PLENTY, 2)


@jit_inner
def _known(own: int) -> Any:
    return grid_at(_part(own, KNOWN), _PLENTY, _COLUMNS)


@jit_inner
def _filled(own: int) -> Any:
    return grid_at(_part(own, FILLED), _PLENTY, LEVELS)


@jit_inner
def _rows(own: int, place: int) -> Any:
    return grid_at(_part(own, ROWS) + 32 * _ROWS * place, _ROWS, 4)


@jit_inner
def _best(own: int) -> Any:
    return floats_at(_part(own, BEST), _PLENTY)


@jit_inner
def _now(own: int) -> int:
    return int(words_at(words_at(own, OWN)[TOUCHES], 1)[0])


@jit_inner
def _touched(own: int, region: int) -> int:
    """How often a region was touched."""
    return int(words_at(words_at(own, OWN)[REGION_TOUCHES], _PLENTY)[region])


@jit_inner
def _place_of(own: int, reference: int) -> int:
    return int(_words(own, PLACE_OF)[reference & (_REFERENCES - 1)])


@jit_inner
def _cell(own: int, place: int, level: int, number: int) -> int:
    """The node of a cell."""
    return int(words_at(own, OWN)[REGIONS] + (place * LEVELS + level) * SPAN + number % SPAN)


@jit_inner
def _arrivals(own: int) -> int:
    """The node of the ring of arrivals, the last of all."""
    return int(words_at(own, OWN)[REGIONS] + (_scalar(own)[TABLE] + 1) * LEVELS * SPAN)


# Rings


@jit_inner
def _append(link: Any, node: int, region: int) -> None:
    """Put a region that is in no ring at the end of the one that this node begins."""
    last = link[node, BEFORE]
    link[last, AFTER], link[region, BEFORE] = region, last
    link[region, AFTER], link[node, BEFORE] = node, region


@jit_inner
def _remove(link: Any, region: int) -> None:
    a, b = link[region, AFTER], link[region, BEFORE]
    link[b, AFTER], link[a, BEFORE] = a, b


@jit_inner
def _pour(link: Any, node: int, into: int) -> None:
    """Append all of one ring to another."""
    first, last = link[node, AFTER], link[node, BEFORE]
    if first != node:
        end = link[into, BEFORE]
        link[end, AFTER], link[first, BEFORE] = first, end
        link[last, AFTER], link[into, BEFORE] = into, last
        link[node, AFTER] = link[node, BEFORE] = node


# Cells


@jit_inner
def _enter(own: int, region: int) -> None:
    """Put a region where its reference and its last touch belong."""
    known, now = _known(own), _now(own)
    place, last = _place_of(own, known[region, REFERENCE]), known[region, LAST]
    _advance(own, place)
    level = 0
    while (now >> level) - (last >> level) >= SPAN:
        level += 1
    node, link = _cell(own, place, level, last >> level), _links(own)
    if _words(own, BEST_AT)[place] == now and link[node, AFTER] == node:
        _consider(own, place, node, _least_tesla(level, last >> level, now), _words(own, ROW)[2 * place])
    _append(link, node, region)
    _filled(own)[place, level] |= 1 << (last >> level) % SPAN
    known[region, PLACE] = place
    _words(own, MEMBERS)[place] += 1


@jit_inner
def _leave(own: int, region: int) -> None:
    known, link, best_at = _known(own), _links(own), _words(own, BEST_AT)
    _remove(link, region)
    place = known[region, PLACE]
    _words(own, MEMBERS)[place] -= 1
    known[region, PLACE] = ABSENT
    best = _words(own, BEST_CELL)[place]
    if best_at[place] == _now(own) and link[best, AFTER] == best:
        best_at[place] = -1  # the lowest cell is empty now


@jit_inner
def _advance(own: int, place: int) -> None:
    """Let time pass: old cells go into those of the next level, the oldest first."""
    at, now, link, filled = _words(own, AT)[place], _now(own), _links(own), _filled(own)
    level = 0
    while level < LEVELS - 1 and now >> level != at >> level:
        if filled[place, level]:
            oldest, youngest = max(0, (at >> level) - SPAN + 1), min(at >> level, (now >> level) - SPAN)
            for number in range(oldest, youngest + 1):
                bit = 1 << number % SPAN
                if filled[place, level] & bit:
                    _pour(link, _cell(own, place, level, number), _cell(own, place, level + 1, number >> 1))
                    filled[place, level] &= ~bit
                    filled[place, level + 1] |= 1 << (number >> 1) % SPAN
        level += 1
    _words(own, AT)[place] = now


@jit_inner
def _least_tesla(level: int, number: int, now: int) -> int:
    youngest = min(now, ((number + 1) << level) - 1)
    if level:
        youngest = min(youngest, (((now >> (level - 1)) - SPAN + 1) << (level - 1)) - 1)
    return now - youngest


@jit_inner
def _consider(own: int, place: int, node: int, tesla: int, row: int) -> int:
    """Has this cell the lowest priority in its place so far? Answers the phase it is in, which is not before ``row``."""
    rows, last, best, best_tesla = _rows(own, place), _words(own, ROW)[2 * place + 1], _best(own), _words(own, BEST_TESLA)
    while row < last and rows[row + 1, START] <= tesla:
        row += 1
    within = rows[row, WITHIN]
    priority = 0.0
    if within:
        priority = within / (float(rows[row, LEFT]) * float(rows[row, LEASE] - tesla))
    if priority < best[place] or (priority == best[place] and tesla > best_tesla[place]):
        best[place], best_tesla[place], _words(own, BEST_CELL)[place] = priority, tesla, node
    return int(row)


@jit_inner
def _find_best(own: int, place: int) -> None:
    """The cell with the lowest priority in this place."""
    now, row, link, filled = _now(own), _words(own, ROW)[2 * place], _links(own), _filled(own)
    _best(own)[place], _words(own, BEST_TESLA)[place] = np.inf, -1
    for level in range(LEVELS):
        if filled[place, level] == 0:
            continue
        for number in range(now >> level, max(-1, (now >> level) - SPAN), -1):
            bit = 1 << number % SPAN
            if filled[place, level] & bit == 0:
                continue
            node = _cell(own, place, level, number)
            if link[node, AFTER] == node:
                filled[place, level] &= ~bit
            else:
                row = _consider(own, place, node, _least_tesla(level, number, now), row)
    _words(own, BEST_AT)[place] = now


@jit_inner
def _lowest(own: int) -> int:
    """The region with the lowest priority; -1 if there is none."""
    scalar, now = _scalar(own), _now(own)
    best, best_tesla, best_cell, best_at = _best(own), _words(own, BEST_TESLA), _words(own, BEST_CELL), _words(own, BEST_AT)
    found = -1
    for i in range(scalar[ENTRIES] + 1):
        place = i if i < scalar[ENTRIES] else scalar[TABLE]
        if _words(own, MEMBERS)[place] == 0:
            continue
        if best_at[place] != now:
            _advance(own, place)
            _find_best(own, place)
        if found < 0 or best[place] < best[found] or (
            best[place] == best[found] and best_tesla[place] > best_tesla[found]
        ):  # fmt: skip
            found = place
    return int(_links(own)[best_cell[found], AFTER]) if found >= 0 else -1


# The table


@jit_inner
def _bucket_of(interval: int) -> int:
    if interval < 2:
        return max(0, interval)
    power = 0
    while interval >> (power + 1):
        power += 1
    return min(2 * power + (interval >> (power - 1) & 1), BUCKETS - 1)


@jit_inner
def _saw(own: int, reference: int, reuses: int, interval: int) -> None:
    scalar = _scalar(own)
    n = scalar[PENDING]
    waiting = grid_at(_part(own, WAITING), _PLENTY, 3)
    waiting[n, 0], waiting[n, 1], waiting[n, 2] = reference, reuses, _bucket_of(interval)
    scalar[PENDING] = n + 1
    if n + 1 == scalar[BATCH]:
        _take_in(own)


@jit_inner
def _take_in(own: int) -> None:
    scalar, changed = _scalar(own), _words(own, CHANGED)
    waiting = grid_at(_part(own, WAITING), _PLENTY, 3)
    for i in range(scalar[PENDING]):
        reference, reuses = waiting[i, 0], waiting[i, 1]
        place = _place_of(own, reference)
        if place == scalar[TABLE]:
            place = _admit(own, reference)
        _words(own, ENTRY_TOUCHES)[place] += max(reuses, 1)
        _words(own, COUNTS)[place * BUCKETS + waiting[i, 2]] += reuses
        changed[place] = 1
    scalar[PENDING] = 0
    for place in range(scalar[ENTRIES]):
        if changed[place]:
            changed[place] = 0
            _refresh(own, place)


@jit_inner
def _admit(own: int, reference: int) -> int:
    scalar, place_of, entry, touches = _scalar(own), _words(own, PLACE_OF), _words(own, ENTRY), _words(own, ENTRY_TOUCHES)
    place = scalar[ENTRIES]
    if place < scalar[TABLE]:
        scalar[ENTRIES] += 1
    else:
        place = 0
        for other in range(scalar[TABLE]):
            if touches[other] < touches[place]:
                place = other
        place_of[entry[place] & (_REFERENCES - 1)] = scalar[TABLE]
        touches[place] = 0
        _words(own, COUNTS)[place * BUCKETS : (place + 1) * BUCKETS] = 0
        scalar[REPLACED] += 1
        _make_nameless(own, place)
    entry[place] = reference
    place_of[reference & (_REFERENCES - 1)] = place
    return int(place)


@jit_inner
def _make_nameless(own: int, place: int) -> None:
    """The regions of a reference that was replaced go to those without an entry."""
    others, now, link = _scalar(own)[TABLE], _now(own), _links(own)
    known, filled, members, best_at = _known(own), _filled(own), _words(own, MEMBERS), _words(own, BEST_AT)
    _advance(own, place)
    _advance(own, others)
    for level in range(LEVELS):
        for number in range(max(0, (now >> level) - SPAN + 1), (now >> level) + 1):
            if filled[place, level] & (1 << number % SPAN):
                node = _cell(own, place, level, number)
                region = link[node, AFTER]
                while region != node:
                    known[region, PLACE] = others
                    region = link[region, AFTER]
                _pour(link, node, _cell(own, others, level, number))
        filled[others, level] |= filled[place, level]
        filled[place, level] = 0
    members[others] += members[place]
    members[place] = 0
    best_at[others] = best_at[place] = -1


@jit_inner
def _refresh(own: int, place: int) -> None:
    """Work the phases of a reference out again."""
    room, counts = _words(own, ROOM), _words(own, COUNTS)
    interval, upto, hull = room[:BUCKETS], room[BUCKETS : 2 * BUCKETS], room[2 * BUCKETS : 3 * BUCKETS + 1]
    begin = room[3 * BUCKETS + 1 : 3 * BUCKETS + 3]
    points = total = 0
    for bucket in range(BUCKETS):
        seen = counts[place * BUCKETS + bucket]
        if seen:
            total += seen
            interval[points], upto[points] = _LONGEST[bucket], total
            points += 1
    begin[0], begin[1] = 0, points
    row, touches = _words(own, ROW)[2 * place : 2 * place + 2], _words(own, ENTRY_TOUCHES)[place : place + 1]
    cut(begin, interval, upto, touches, hull, row[:1], row[1:], _rows(own, place))
    _words(own, BEST_AT)[place] = -1


# The sampler


@jit_inner
def _is_sampled(own: int, region: int) -> bool:
    drawn = np.uint64(region) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(11)
    return bool(np.int64(drawn) < _scalar(own)[SAMPLE])


@jit_inner
def _note_moments(own: int, region: int, after: int) -> int:
    """Write down when pages of the region were touched, and by whom, sorted by time; how many there are."""
    h = words_at(own, OWN)
    pages = h[PAGES_PER_REGION]
    touch, reference = words_at(h[LAST_TOUCH], _PLENTY), shorts_at(h[LAST_REFERENCE], _PLENTY)
    moments = grid_at(_part(own, MOMENTS), _PLENTY, 2)
    n = 0
    for page in range(region * pages, (region + 1) * pages):
        when = touch[page]
        if when > after:
            i = n
            while i > 0 and moments[i - 1, 0] > when:
                moments[i, 0], moments[i, 1] = moments[i - 1, 0], moments[i - 1, 1]
                i -= 1
            moments[i, 0], moments[i, 1] = when, reference[page]
            n += 1
    return n


@jit_inner
def _saw_reuses(own: int, when: int, reference: int, first: int, n: int, touches: int) -> None:
    """What the moments from ``first`` to ``n`` say of so many touches since ``when``."""
    moments = grid_at(_part(own, MOMENTS), _PLENTY, 2)
    interval = moments[first, 0] - when
    if n - first == 1:
        _saw(own, reference, touches, interval // touches)
        return
    hidden, apart = touches - (n - first), (moments[n - 1, 0] - moments[first, 0]) // (n - first - 1)
    if hidden:
        _saw(own, reference, hidden, apart)
        interval = max(interval - hidden * apart, min(interval, apart))
    _saw(own, reference, 1, interval)
    for i in range(first, n - 1):
        _saw(own, moments[i, 1], 1, moments[i + 1, 0] - moments[i, 0])


@jit_inner
def _look(own: int, region: int) -> None:
    """Know a region as it is."""
    h, known = words_at(own, OWN), _known(own)
    pages = h[PAGES_PER_REGION]
    touch = words_at(h[LAST_TOUCH], _PLENTY)
    latest = region * pages
    for page in range(latest + 1, (region + 1) * pages):
        if touch[page] > touch[latest]:
            latest = page
    known[region, LAST], known[region, REFERENCE] = touch[latest], shorts_at(h[LAST_REFERENCE], _PLENTY)[latest]
    known[region, COUNT] = _touched(own, region)


@jit_inner
def _touched_since(own: int, region: int) -> bool:
    """Has a region been touched since it was looked at? Then it was used, and what is known of it is put right."""
    known = _known(own)
    touches = _touched(own, region) - known[region, COUNT]
    if touches == 0:
        return False
    if _is_sampled(own, region):
        last = known[region, LAST]
        n = _note_moments(own, region, last)
        _saw_reuses(own, last, known[region, REFERENCE], 0, n, touches)
    _leave(own, region)
    _look(own, region)
    _enter(own, region)
    return True


@jit_inner
def _arrived(own: int, region: int, touches: int) -> None:
    known, moments = _known(own), grid_at(_part(own, MOMENTS), _PLENTY, 2)
    n, when = _note_moments(own, region, known[region, LAST]), known[region, WHEN]
    if known[region, COUNT]:
        _saw(own, known[region, REFERENCE], 1, when - known[region, LAST])
    else:
        _saw(own, moments[0, 1], 0, 0)
    if touches > 1 and n > 1:
        _saw_reuses(own, moments[0, 0], moments[0, 1], 1, n, touches - 1)
    elif touches > 1:
        _saw_reuses(own, when, moments[0, 1], 0, n, touches - 1)


@jit_inner
def _settle_arrivals(own: int) -> None:
    """Regions that faulted have been touched by now."""
    h, link, known, arrivals = words_at(own, OWN), _links(own), _known(own), _arrivals(own)
    pinned, turn = words_at(h[PINNED], _PLENTY), words_at(h[TURN], 1)[0]
    while link[arrivals, AFTER] != arrivals and pinned[link[arrivals, AFTER]] != turn:
        region = link[arrivals, AFTER]
        _remove(link, region)
        touches = _touched(own, region) - known[region, COUNT]
        if touches and _is_sampled(own, region):
            _arrived(own, region, touches)
        _look(own, region)
        if touches == 0:
            known[region, LAST] = known[region, WHEN]
        _enter(own, region)


@jit_inner
def _fault(own: int, region: int) -> None:
    known, link = _known(own), _links(own)
    if known[region, PLACE] >= 0:
        _touched_since(own, region)
        _leave(own, region)
    if known[region, PLACE] == ARRIVING:
        _remove(link, region)
    else:
        _look(own, region)
        known[region, WHEN] = _now(own)
        known[region, PLACE] = ARRIVING
    _append(link, _arrivals(own), region)


@jit_policy
def _leu(own: int, event: int) -> int:
    if event == VICTIM:
        _settle_arrivals(own)
        region = _lowest(own)
        while region >= 0 and _touched_since(own, region):
            region = _lowest(own)
        return region if region >= 0 else _links(own)[_arrivals(own), AFTER]
    region = event >> EVENT_BITS
    if event & 255 != EVICTION:
        _fault(own, region)
    elif _known(own)[region, PLACE] == ARRIVING:
        _remove(_links(own), region)
        _known(own)[region, PLACE] = ABSENT
    else:
        _leave(own, region)
    return 0


LEU_TWIN = Twin(_leu, prepare=_prepare, results=_counted)
