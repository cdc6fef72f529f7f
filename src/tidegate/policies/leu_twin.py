"""LEU's compiled twin: the same table, cells and sampler on arrays (see eviction/leu.py, rimm.py, cells.py, intervals.py).

A cell is a ring of links with a node of its own, so a region is taken out without asking where it is, and a whole cell
is appended to another at once. The cells of a level are found by number modulo SPAN; ``filled`` has a bit for each that
may hold somebody. The lowest of a reference is kept as long as neither time nor anything in its place has moved.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

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
from tidegate.policies.compiled import Twin, floats_at, shorts_at, words_at
from tidegate.policies.intervals import BUCKETS, LONGEST
from tidegate.statistics.phases import LEASE, LEFT, START, WITHIN, cut

_LONGEST = np.array(LONGEST, np.int64)
_REFERENCES = 1 << 16
_ROWS = 2 * BUCKETS + 1

# scalars, in front of everything else
TABLE, BATCH, SAMPLE, PENDING, ENTRIES, REPLACED, RESIDENT = range(7)
_SCALARS = 8
ABSENT, ARRIVING = -1, -2  # instead of a place in the table


class _State(NamedTuple):
    """Everything the twin works on; what is [places] has one row for each entry of the table and one for the others."""

    now: Any
    turn: Any
    ppr: Any
    pinned: Any
    touched: Any  # per region, by the mechanism: how often
    page_touch: Any
    page_reference: Any
    scalar: Any
    after: Any  # [regions, cells, arrivals] links
    before: Any
    place: Any  # [regions]
    last: Any  # [regions] what is known: last touch, by whom, how many
    reference: Any
    touches: Any
    when: Any  # [regions] it faulted
    at: Any  # [places] the time to which its cells were brought
    members: Any  # [places]
    filled: Any  # [places, levels]
    entry: Any  # [places] the reference
    place_of: Any  # [references]
    entry_touches: Any  # [places]
    counts: Any  # [places, buckets]
    changed: Any  # [places]
    rows: Any  # [places, rows, 4] phases
    row: Any  # [places, 2] the first and last of them
    best: Any  # [places] lowest priority
    best_tesla: Any
    best_cell: Any
    best_at: Any  # [places] when that was found; -1: no more
    pending: Any  # [batch, 3]
    moments: Any  # [pages per region, 2]
    room: Any  # for working phases out


def _sizes(regions: Any, pages: Any, table: Any, batch: Any) -> Any:
    """Words of each array from ``scalar`` on."""
    places = table + 1
    nodes = regions + places * LEVELS * SPAN + 1
    return (
        _SCALARS, nodes, nodes, regions, regions, regions, regions, regions,
        places, places, places * LEVELS, places, _REFERENCES, places, places * BUCKETS, places,
        places * _ROWS * 4, places * 2, places, places, places, places,
        batch * 3, pages * 2, 4 * BUCKETS + 8,
    )  # fmt: skip


_compiled_sizes = jit_inner(_sizes)


def _prepare(policy: Any, regions: int, pages: int) -> NDArray[np.int64]:
    """The twin's words at the start of a run."""
    sizes = _sizes(regions, pages, policy.table, policy.batch)
    own = np.zeros(sum(sizes), np.int64)
    parts = np.split(own, np.cumsum(sizes)[:-1])
    scalar, after, before, place = parts[:4]
    scalar[TABLE], scalar[BATCH], scalar[SAMPLE] = policy.table, policy.batch, math.ceil(policy.sample * 2**53)
    after[:] = before[:] = np.arange(len(after))
    place[:] = ABSENT
    place_of, row, best_at = parts[12], parts[17], parts[21]
    place_of[:] = policy.table
    best_at[:] = -1
    rows = parts[16].reshape(-1, _ROWS, 4)
    rows[:, 0, LEASE], rows[:, 0, LEFT] = 2**31 - 1, 1  # no use is expected of anyone yet
    row[:] = 0
    return own


def _counted(policy: Any, own: NDArray[np.int64]) -> None:
    policy.counted = {"references": int(own[ENTRIES]), "references replaced": int(own[REPLACED])}


@jit_inner
def _state(own: int) -> Any:
    h = words_at(own, OWN)
    n, ppr = h[REGIONS], h[PAGES_PER_REGION]
    base = own + 8 * OWN
    scalar = words_at(base, _SCALARS)
    places, batch = scalar[TABLE] + 1, scalar[BATCH]
    nodes = n + places * LEVELS * SPAN + 1
    a = base + 8 * _SCALARS
    after, a = words_at(a, nodes), a + 8 * nodes
    before, a = words_at(a, nodes), a + 8 * nodes
    place, a = words_at(a, n), a + 8 * n
    last, a = words_at(a, n), a + 8 * n
    reference, a = words_at(a, n), a + 8 * n
    touches, a = words_at(a, n), a + 8 * n
    when, a = words_at(a, n), a + 8 * n
    at, a = words_at(a, places), a + 8 * places
    members, a = words_at(a, places), a + 8 * places
    filled, a = words_at(a, places * LEVELS).reshape(places, LEVELS), a + 8 * places * LEVELS
    entry, a = words_at(a, places), a + 8 * places
    place_of, a = words_at(a, _REFERENCES), a + 8 * _REFERENCES
    entry_touches, a = words_at(a, places), a + 8 * places
    counts, a = words_at(a, places * BUCKETS).reshape(places, BUCKETS), a + 8 * places * BUCKETS
    changed, a = words_at(a, places), a + 8 * places
    rows, a = words_at(a, places * _ROWS * 4).reshape(places, _ROWS, 4), a + 8 * places * _ROWS * 4
    row, a = words_at(a, places * 2).reshape(places, 2), a + 16 * places
    best, a = floats_at(a, places), a + 8 * places
    best_tesla, a = words_at(a, places), a + 8 * places
    best_cell, a = words_at(a, places), a + 8 * places
    best_at, a = words_at(a, places), a + 8 * places
    pending, a = words_at(a, batch * 3).reshape(batch, 3), a + 24 * batch
    moments, a = words_at(a, ppr * 2).reshape(ppr, 2), a + 16 * ppr
    room = words_at(a, 4 * BUCKETS + 8)
    return _State(
        words_at(h[TOUCHES], 1)[0], words_at(h[TURN], 1)[0], ppr, words_at(h[PINNED], n), words_at(h[REGION_TOUCHES], n),
        words_at(h[LAST_TOUCH], n * ppr), shorts_at(h[LAST_REFERENCE], n * ppr), scalar, after, before, place, last,
        reference, touches, when, at, members, filled, entry, place_of, entry_touches, counts, changed, rows, row, best,
        best_tesla, best_cell, best_at, pending, moments, room,
    )  # fmt: skip


# Rings


@jit_inner
def _append(s: Any, node: int, region: int) -> None:
    """Put a region that is in no ring at the end of the one that this node begins."""
    tail = s.before[node]
    s.after[tail], s.before[region] = region, tail
    s.after[region], s.before[node] = node, region


@jit_inner
def _remove(s: Any, region: int) -> None:
    a, b = s.after[region], s.before[region]
    s.after[b], s.before[a] = a, b


@jit_inner
def _pour(s: Any, node: int, into: int) -> None:
    """Append all of one ring to another."""
    head, tail = s.after[node], s.before[node]
    if head != node:
        end = s.before[into]
        s.after[end], s.before[head] = head, end
        s.after[tail], s.before[into] = into, tail
        s.after[node] = s.before[node] = node


# Cells


@jit_inner
def _node(s: Any, place: int, level: int, number: int) -> int:
    """The node of a cell, which counts as filled from now on."""
    slot = number % SPAN
    s.filled[place, level] |= 1 << slot
    return int(len(s.place) + (place * LEVELS + level) * SPAN + slot)


@jit_inner
def _enter(s: Any, region: int, place: int) -> None:
    _advance(s, place)
    last, now = s.last[region], s.now
    level = 0
    while (now >> level) - (last >> level) >= SPAN:
        level += 1
    _append(s, _node(s, place, level, last >> level), region)
    s.place[region] = place
    s.members[place] += 1
    s.best_at[place] = -1


@jit_inner
def _leave(s: Any, region: int) -> None:
    _remove(s, region)
    place = s.place[region]
    s.members[place] -= 1
    s.best_at[place] = -1
    s.place[region] = ABSENT


@jit_inner
def _advance(s: Any, place: int) -> None:
    at, now = s.at[place], s.now
    level = 0
    while level < LEVELS - 1 and now >> level != at >> level:
        if s.filled[place, level]:
            oldest = max(0, (at >> level) - SPAN + 1)
            youngest = min(at >> level, (now >> level) - SPAN)
            for number in range(oldest, youngest + 1):
                bit = 1 << number % SPAN
                if s.filled[place, level] & bit:
                    _pour(s, _node(s, place, level, number), _node(s, place, level + 1, number >> 1))
                    s.filled[place, level] &= ~bit
        level += 1
    s.at[place] = now


@jit_inner
def _find_best(s: Any, place: int) -> None:
    """The cell with the lowest priority in this place."""
    rows, row, end = s.rows[place], s.row[place, 0], s.row[place, 1]
    now = s.now
    s.best[place], s.best_tesla[place], s.best_cell[place] = np.inf, 0, -1
    for level in range(LEVELS):
        if s.filled[place, level] == 0:
            continue
        first = now >> level
        limit = now
        if level:
            limit = min(now, (((now >> (level - 1)) - SPAN + 1) << (level - 1)) - 1)
        for number in range(first, max(-1, first - SPAN), -1):
            bit = 1 << number % SPAN
            if s.filled[place, level] & bit == 0:
                continue
            node = _node(s, place, level, number)
            if s.after[node] == node:
                s.filled[place, level] &= ~bit
                continue
            tesla = now - min(limit, ((number + 1) << level) - 1)
            while row < end and rows[row + 1, START] <= tesla:
                row += 1
            within = rows[row, WITHIN]
            priority = 0.0
            if within:
                priority = within / (float(rows[row, LEFT]) * float(rows[row, LEASE] - tesla))
            if priority < s.best[place] or (priority == s.best[place] and tesla > s.best_tesla[place]):
                s.best[place], s.best_tesla[place], s.best_cell[place] = priority, tesla, node
    s.best_at[place] = now


@jit_inner
def _lowest(s: Any) -> int:
    """The region with the lowest priority; -1 if there is none."""
    table = s.scalar[TABLE]
    best, best_tesla, cell = np.inf, 0, -1
    for i in range(s.scalar[ENTRIES] + 1):
        place = i if i < s.scalar[ENTRIES] else table
        if s.members[place] == 0:
            continue
        if s.best_at[place] != s.now:
            _advance(s, place)
            _find_best(s, place)
        if s.best[place] < best or (s.best[place] == best and s.best_tesla[place] > best_tesla):
            best, best_tesla, cell = s.best[place], s.best_tesla[place], s.best_cell[place]
    return int(s.after[cell]) if cell >= 0 else -1


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
def _saw(s: Any, reference: int, reuses: int, interval: int) -> None:
    n = s.scalar[PENDING]
    s.pending[n, 0], s.pending[n, 1], s.pending[n, 2] = reference, reuses, _bucket_of(interval)
    s.scalar[PENDING] = n + 1
    if n + 1 == s.scalar[BATCH]:
        _take_in(s)


@jit_inner
def _take_in(s: Any) -> None:
    for i in range(s.scalar[PENDING]):
        reference, reuses, bucket = s.pending[i, 0], s.pending[i, 1], s.pending[i, 2]
        place = s.place_of[reference & (_REFERENCES - 1)]
        if place == s.scalar[TABLE]:
            place = _admit(s, reference)
        s.entry_touches[place] += max(reuses, 1)
        s.counts[place, bucket] += reuses
        s.changed[place] = 1
    s.scalar[PENDING] = 0
    for place in range(s.scalar[ENTRIES]):
        if s.changed[place]:
            s.changed[place] = 0
            _refresh(s, place)


@jit_inner
def _admit(s: Any, reference: int) -> int:
    place = s.scalar[ENTRIES]
    if place < s.scalar[TABLE]:
        s.scalar[ENTRIES] += 1
    else:
        place = int(np.argmin(s.entry_touches[: s.scalar[TABLE]]))
        s.place_of[s.entry[place] & (_REFERENCES - 1)] = s.scalar[TABLE]
        s.entry_touches[place] = 0
        s.counts[place] = 0
        s.scalar[REPLACED] += 1
        _make_nameless(s, place)
    s.entry[place] = reference
    s.place_of[reference & (_REFERENCES - 1)] = place
    return int(place)


@jit_inner
def _make_nameless(s: Any, place: int) -> None:
    others = s.scalar[TABLE]
    _advance(s, place)
    _advance(s, others)
    for level in range(LEVELS):
        if s.filled[place, level] == 0:
            continue
        first = s.now >> level
        for number in range(max(0, first - SPAN + 1), first + 1):
            if s.filled[place, level] & (1 << number % SPAN):
                node = _node(s, place, level, number)
                region = s.after[node]
                while region != node:
                    s.place[region] = others
                    region = s.after[region]
                _pour(s, node, _node(s, others, level, number))
        s.filled[place, level] = 0
    s.members[others] += s.members[place]
    s.members[place] = 0
    s.best_at[others] = s.best_at[place] = -1


@jit_inner
def _refresh(s: Any, place: int) -> None:
    """Work the phases of a reference out again."""
    interval, upto, hull = s.room[:BUCKETS], s.room[BUCKETS : 2 * BUCKETS], s.room[2 * BUCKETS : 3 * BUCKETS + 1]
    points = total = 0
    for bucket in range(BUCKETS):
        if s.counts[place, bucket]:
            total += s.counts[place, bucket]
            interval[points], upto[points] = _LONGEST[bucket], total
            points += 1
    begin = s.room[3 * BUCKETS + 1 : 3 * BUCKETS + 3]
    begin[0], begin[1] = 0, points
    row = s.row[place]
    cut(begin, interval, upto, s.entry_touches[place : place + 1], hull, row[:1], row[1:], s.rows[place])
    s.best_at[place] = -1


# The sampler


@jit_inner
def _is_sampled(s: Any, region: int) -> bool:
    drawn = np.uint64(region) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(11)
    return np.int64(drawn) < s.scalar[SAMPLE]


@jit_inner
def _moments(s: Any, region: int, after: int) -> int:
    """Write down when pages of the region were touched, and by whom, sorted by time; how many there are."""
    n = 0
    for page in range(region * s.ppr, (region + 1) * s.ppr):
        when = s.page_touch[page]
        if when > after:
            i = n
            while i > 0 and s.moments[i - 1, 0] > when:
                s.moments[i, 0], s.moments[i, 1] = s.moments[i - 1, 0], s.moments[i - 1, 1]
                i -= 1
            s.moments[i, 0], s.moments[i, 1] = when, s.page_reference[page]
            n += 1
    return n


@jit_inner
def _saw_reuses(s: Any, when: int, reference: int, first: int, n: int, touches: int) -> None:
    """What the moments from ``first`` to ``n`` say of so many touches since ``when``."""
    interval = s.moments[first, 0] - when
    if n - first == 1:
        _saw(s, reference, touches, interval // touches)
        return
    hidden, apart = touches - (n - first), (s.moments[n - 1, 0] - s.moments[first, 0]) // (n - first - 1)
    if hidden:
        _saw(s, reference, hidden, apart)
        interval = max(interval - hidden * apart, min(interval, apart))
    _saw(s, reference, 1, interval)
    for i in range(first, n - 1):
        _saw(s, s.moments[i, 1], 1, s.moments[i + 1, 0] - s.moments[i, 0])


@jit_inner
def _look(s: Any, region: int) -> None:
    latest = region * s.ppr
    for page in range(latest + 1, (region + 1) * s.ppr):
        if s.page_touch[page] > s.page_touch[latest]:
            latest = page
    s.last[region], s.reference[region] = s.page_touch[latest], s.page_reference[latest]
    s.touches[region] = s.touched[region]


@jit_inner
def _touched_since(s: Any, region: int) -> bool:
    touches = s.touched[region] - s.touches[region]
    if touches == 0:
        return False
    if _is_sampled(s, region):
        n = _moments(s, region, s.last[region])
        _saw_reuses(s, s.last[region], s.reference[region], 0, n, touches)
    _leave(s, region)
    _look(s, region)
    _enter(s, region, s.place_of[s.reference[region] & (_REFERENCES - 1)])
    return True


@jit_inner
def _arrived(s: Any, region: int, touches: int) -> None:
    n, when = _moments(s, region, s.last[region]), s.when[region]
    if s.touches[region]:
        _saw(s, s.reference[region], 1, when - s.last[region])
    else:
        _saw(s, s.moments[0, 1], 0, 0)
    if touches > 1:
        if n > 1:
            _saw_reuses(s, s.moments[0, 0], s.moments[0, 1], 1, n, touches - 1)
        else:
            _saw_reuses(s, when, s.moments[0, 1], 0, n, touches - 1)


@jit_inner
def _settle_arrivals(s: Any) -> None:
    arrivals = len(s.after) - 1
    while s.after[arrivals] != arrivals and s.pinned[s.after[arrivals]] != s.turn:
        region = s.after[arrivals]
        _remove(s, region)
        touches = s.touched[region] - s.touches[region]
        if touches and _is_sampled(s, region):
            _arrived(s, region, touches)
        _look(s, region)
        if touches == 0:
            s.last[region] = s.when[region]
        _enter(s, region, s.place_of[s.reference[region] & (_REFERENCES - 1)])


@jit_inner
def _fault(s: Any, region: int) -> None:
    if s.place[region] >= 0:
        _touched_since(s, region)
        _leave(s, region)
    if s.place[region] == ARRIVING:
        _remove(s, region)
    else:
        _look(s, region)
        s.when[region] = s.now
        s.place[region] = ARRIVING
    _append(s, len(s.after) - 1, region)


@jit_inner
def _gone(s: Any, region: int) -> None:
    if s.place[region] == ARRIVING:
        _remove(s, region)
        s.place[region] = ABSENT
    else:
        _leave(s, region)


@jit_policy
def _leu(own: int, event: int) -> int:
    s = _state(own)
    if event == VICTIM:
        _settle_arrivals(s)
        region = _lowest(s)
        while region >= 0 and _touched_since(s, region):
            region = _lowest(s)
        return region if region >= 0 else s.after[len(s.after) - 1]
    region = event >> EVENT_BITS
    if event & 255 == EVICTION:
        _gone(s, region)
    else:
        _fault(s, region)
    return 0


LEU_TWIN = Twin(_leu, prepare=_prepare, results=_counted)
