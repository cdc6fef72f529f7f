"""The compiled walk: touches one after another, in the order in which the trace has them.

touch ── near ─────────────────────────────────────▶ hit
      └─ absent ── room? ── no: candidate ── place ── STAY    another candidate, most_stays times at most
                                                   ├─ MIDDLE  if it is full: nobody, the oldest, or whom the policy names
                                                   └─ FAR     written if dirty, else dropped
                   bring it near, from the middle or from the SSD

At the end what is dirty in near and middle memory is written: a program whose results never reach their store is not done.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidegate.jit import jit, jit_inner
from tidegate.mechanism import events as near_events
from tidegate.mechanism.tiers.distances import measure
from tidegate.mechanism.tiers.events import EVENT_BITS, FAILED, KNOWN, PLACE, RETURN, SAMPLES, SPILL, TOUCH, VICTIM
from tidegate.mechanism.tiers.service import (
    begin_launch,
    begin_miss,
    compute,
    drain,
    flush_page,
    serve,
    wait_for_writes,
    write_storage,
)
from tidegate.mechanism.tiers.state import (
    COMPUTE,
    DIRTY,
    DROPPED,
    EVICTIONS,
    FAR_AWAY,
    FAR_READS,
    FILLED,
    HAND,
    HEAD,
    HITS,
    IN_MIDDLE,
    KEPT,
    LOOKUPS,
    MIDDLE_FLUSHED,
    MIDDLE_HITS,
    MIDDLE_USED,
    MIDDLE_WRITTEN,
    NEAR_FLUSHED,
    NEAR_USED,
    NEAR_WRITTEN,
    NOTIFICATIONS,
    NOW,
    REFERENCED,
    SPILLED,
    STAYS,
    TAIL,
    TO_FAR,
    TO_MIDDLE,
    TOUCHES,
    WANTED,
    WASTED,
    WATCHED,
)
from tidegate.policies.tier_policy import ASKED, FAR, MIDDLE, NOBODY, STAY

# Why a walk stopped before its end.
FINISHED, POLICY_FAILED, BAD_PLACE, BAD_VICTIM, BAD_SPILL = range(5)


class Rules(NamedTuple):
    """What stays the same during a run."""

    near: int  # capacity in pages
    middle: int
    makes_room: int  # who leaves a full middle: NOBODY, OLDEST or ASKED
    most_stays: int  # candidates that may stay before one has to go
    clock: bool  # CLOCK in the near tier; otherwise the eviction policy is asked, or
    chooses: bool  # the placement policy chooses victims itself
    wants_return: bool
    wants_touch: bool
    wants_observe: bool
    records: bool  # every touch, for the eviction policy to look at


class Calls(NamedTuple):
    """The policies, as C functions with the addresses of their data."""

    placement: Any
    own: int
    eviction: Any
    eviction_own: int


class Columns(NamedTuple):
    """A segment, and the next uses of its pages, if the future is seen."""

    pages: Any
    writes: Any
    sizes: Any
    references: Any
    uses: Any


@jit
def walk(m: Any, rules: Any, calls: Any, costs: Any, segment: Any) -> int:
    """Every touch of a segment; FINISHED, or why it stopped."""
    pages, writes, sizes = segment.pages, segment.writes, segment.sizes
    quiet = not rules.wants_touch and not rules.records  # nobody has to hear of a hit, once no more pairs are wanted
    i = 0
    while i < len(pages):
        if quiet and m.sampling[WANTED] == 0:
            i = _hits(m, costs.byte, pages, writes, sizes, i)
            if i == len(pages):
                break
        page = pages[i]
        if len(segment.uses):
            m.uses[page] = segment.uses[i]
        stopped = _touch(m, rules, calls, costs, page, writes[i], sizes[i])
        if stopped != FINISHED:
            return stopped
        if rules.records:
            m.last[page] = m.count[TOUCHES]
            m.touched[page] += 1
            m.reference[page] = segment.references[i]
        i += 1
    return FINISHED


@jit_inner
def _hits(m: Any, per_byte: float, pages: Any, writes: Any, sizes: Any, i: int) -> int:
    """Touches of near pages that nobody has to hear of, up to the first that is not one."""
    where, frames, first, total = m.where, m.frames, i, 0
    while i < len(pages):
        frame = where[np.uint64(pages[i])]
        if frame < 0:
            break
        frames[np.uint64(frame)] |= DIRTY | REFERENCED if writes[i] else REFERENCED
        total += sizes[i]
        i += 1
    m.count[TOUCHES] += i - first
    m.count[HITS] += i - first
    m.clock[COMPUTE] += total * per_byte
    m.clock[NOW] += total * per_byte
    return i


@jit_inner
def _touch(m: Any, rules: Any, calls: Any, costs: Any, page: int, write: int, size: int) -> int:
    """Any touch."""
    m.count[TOUCHES] += 1
    if m.sampling[WANTED] > 0:
        if measure(m, page, m.count[TOUCHES]):
            if calls.placement(calls.own, SAMPLES) == FAILED:
                return POLICY_FAILED
            m.sampling[FILLED] = 0
        m.last[page] = m.count[TOUCHES]
    compute(m, costs, size)
    frame = m.where[page]
    if frame < 0:
        stopped, frame = _miss(m, rules, calls, costs, page)
        if stopped != FINISHED:
            return stopped
        m.frames[frame] |= DIRTY if write else 0
    else:
        m.count[HITS] += 1
        flags = m.frames[frame]
        m.frames[frame] = flags | REFERENCED | (DIRTY if write else 0)
        if flags & WATCHED and not _notice(m, rules, calls, page, frame):
            return POLICY_FAILED
    if rules.wants_touch and calls.placement(calls.own, TOUCH | page << EVENT_BITS) == FAILED:
        return POLICY_FAILED
    return FINISHED


@jit
def launch(m: Any, costs: Any) -> None:
    """A launch begins when the one before is over."""
    begin_launch(m, costs)


@jit
def finish(m: Any, costs: Any, flush: bool) -> None:
    """The last launch is over; ``flush``: and all results are in the far tier."""
    drain(m)
    if not flush:
        return
    for frame in range(m.count[NEAR_USED]):
        if m.frames[frame] & DIRTY:
            m.count[NEAR_FLUSHED] += 1
            flush_page(m, costs, True)
    for place in range(m.hand[HEAD], m.hand[TAIL]):
        if m.queue[place] >= 0 and m.queue_dirty[place]:
            m.count[MIDDLE_FLUSHED] += 1
            flush_page(m, costs, False)
    wait_for_writes(m)


@jit_inner
def _miss(m: Any, rules: Any, calls: Any, costs: Any, page: int) -> Any:
    """Bring a page near: FINISHED and its frame, or why not."""
    begin_miss(m)
    c, flags = m.count, np.uint8(0)
    if m.left[page] and rules.wants_return:
        answer = calls.placement(calls.own, RETURN | page << EVENT_BITS)
        if answer == FAILED:
            return POLICY_FAILED, -1
        flags = np.uint8(KEPT if answer == KNOWN else 0)
    far = m.where[page] == FAR_AWAY
    if not far:
        # out of the middle first, so that the victim can have its room
        flags |= DIRTY if _take(m, page) else 0
    c[LOOKUPS] += rules.middle > 0
    c[WASTED] += far and rules.middle > 0
    c[FAR_READS if far else MIDDLE_HITS] += 1
    out, frame = STAY, c[NEAR_USED]
    if frame < rules.near:
        c[NEAR_USED] += 1
    else:
        stopped, frame, out = _evict(m, rules, calls, costs)
        if stopped != FINISHED:
            return stopped, -1
    serve(m, costs, far, out)
    m.where[page], m.held[frame], m.frames[frame] = frame, page, flags
    if not rules.clock and not rules.chooses and not _arrived(m, rules, calls, page):
        return POLICY_FAILED, -1
    return FINISHED, frame


@jit_inner
def _evict(m: Any, rules: Any, calls: Any, costs: Any) -> Any:
    """Find a page that leaves and send it off: why not, its frame, and where bytes go, for the sake of their cost."""
    stays, before = 0, -1
    while True:
        if rules.clock:
            frame, stays = _sweep(m.frames, m.hand, rules, stays)
        else:
            frame = _named(m, rules, calls)
            if frame < 0:
                return POLICY_FAILED if frame == FAILED else BAD_VICTIM, -1, STAY
        page = m.held[frame]
        to = STAY if m.frames[frame] & KEPT else calls.placement(calls.own, PLACE | page << EVENT_BITS)
        if to < STAY or to > FAR:
            return POLICY_FAILED if to == FAILED else BAD_PLACE, -1, STAY
        if to == STAY and (stays == rules.most_stays or frame == before):
            to = MIDDLE  # it has to go, and the middle is the nearest there is
        if to != STAY:
            break
        stays, before = stays + 1, frame
        if not _pass_over(m, rules, calls, page):
            return POLICY_FAILED, -1, STAY
    m.count[STAYS] += stays
    if rules.clock:
        _step(m.hand, rules)
    elif not rules.chooses and calls.eviction(calls.eviction_own, near_events.EVICTION | page << EVENT_BITS) == FAILED:
        return POLICY_FAILED, -1, STAY
    stopped, out = _leave(m, rules, calls, costs, page, m.frames[frame] & DIRTY, to)
    return stopped, frame, out


# Candidates


@jit_inner
def _sweep(frames: Any, hand: Any, rules: Any, stays: int) -> Any:
    """CLOCK's hand goes on to a page that was not used since it came by last, past those known to stay, if they may."""
    at, most, near = hand[HAND], rules.most_stays, rules.near
    while True:
        flags = frames[np.uint64(at)]
        stay = flags & (REFERENCED | KEPT) == KEPT
        if flags & (REFERENCED | KEPT) == 0 or (stay and stays == most):
            break
        frames[np.uint64(at)] = flags & ~np.uint8(REFERENCED)
        stays += stay
        at = at + 1 if at + 1 < near else 0
    hand[HAND] = at
    return at, stays


@jit_inner
def _step(hand: Any, rules: Any) -> None:
    hand[HAND] = hand[HAND] + 1 if hand[HAND] + 1 < rules.near else 0


@jit_inner
def _named(m: Any, rules: Any, calls: Any) -> int:
    """The frame of the page that a policy names; FAILED if it raised, less if that page is not near."""
    if rules.chooses:
        page = calls.placement(calls.own, VICTIM)
    else:
        page = calls.eviction(calls.eviction_own, near_events.VICTIM)
    if page == FAILED:
        return FAILED
    return m.where[page] if 0 <= page < len(m.where) and m.where[page] >= 0 else FAILED - 1


@jit_inner
def _pass_over(m: Any, rules: Any, calls: Any, page: int) -> bool:
    """The candidate stays. CLOCK's hand moves on; another policy is told of it as of a page that was just asked for."""
    if rules.clock:
        _step(m.hand, rules)
        return True
    if rules.chooses:
        return True
    return calls.eviction(calls.eviction_own, near_events.FAULT | page << EVENT_BITS) != FAILED


# Ways out


@jit_inner
def _leave(m: Any, rules: Any, calls: Any, costs: Any, page: int, dirty: int, to: int) -> Any:
    """The page goes to the middle, if it may and there is room, else far."""
    c = m.count
    c[EVICTIONS] += 1
    m.left[page] = c[TOUCHES]
    if to == MIDDLE and rules.middle and (c[MIDDLE_USED] < rules.middle or rules.makes_room != NOBODY):
        if c[MIDDLE_USED] == rules.middle:
            stopped = _spill(m, rules, calls, costs)
            if stopped != FINISHED:
                return stopped, STAY
        _put(m, page, dirty)
        c[TO_MIDDLE] += 1
        return FINISHED, MIDDLE
    c[TO_FAR] += 1
    m.where[page] = FAR_AWAY
    c[NEAR_WRITTEN if dirty else DROPPED] += 1
    return FINISHED, FAR if dirty else STAY


@jit_inner
def _spill(m: Any, rules: Any, calls: Any, costs: Any) -> int:
    """A page leaves the middle for the SSD."""
    if rules.makes_room == ASKED:
        page = calls.placement(calls.own, SPILL)
        if page < 0 or page >= len(m.where) or m.where[page] > IN_MIDDLE:
            return POLICY_FAILED if page == FAILED else BAD_SPILL
    else:
        while m.queue[m.hand[HEAD]] < 0:
            m.hand[HEAD] += 1
        page = m.queue[m.hand[HEAD]]
    m.count[SPILLED] += 1
    if _take(m, page):
        m.count[MIDDLE_WRITTEN] += 1
        write_storage(m, costs)
    m.where[page] = FAR_AWAY
    return FINISHED


# The middle: pages in the order in which they came. Who leaves, leaves his place empty.


@jit_inner
def _put(m: Any, page: int, dirty: int) -> None:
    if m.hand[TAIL] == len(m.queue):
        _close_up(m)
    place = m.hand[TAIL]
    m.queue[place], m.queue_dirty[place] = page, dirty
    m.where[page] = IN_MIDDLE - place
    m.hand[TAIL] = place + 1
    m.count[MIDDLE_USED] += 1


@jit_inner
def _take(m: Any, page: int) -> int:
    """A page leaves the middle; is it dirty?"""
    place = IN_MIDDLE - m.where[page]
    m.queue[place] = -1
    m.count[MIDDLE_USED] -= 1
    return m.queue_dirty[place]


@jit_inner
def _close_up(m: Any) -> None:
    """No more room at the tail: the empty places, half of all, are given up."""
    kept = 0
    for place in range(m.hand[HEAD], m.hand[TAIL]):
        page = m.queue[place]
        if page >= 0:
            m.queue[kept], m.queue_dirty[kept] = page, m.queue_dirty[place]
            m.where[page] = IN_MIDDLE - kept
            kept += 1
    m.hand[HEAD], m.hand[TAIL] = 0, kept


# Eviction policies of the project, in place of CLOCK


@jit_inner
def _arrived(m: Any, rules: Any, calls: Any, page: int) -> bool:
    """Tell the eviction policy of a page that came near."""
    if calls.eviction(calls.eviction_own, near_events.FAULT | page << EVENT_BITS) == FAILED:
        return False
    return _observe(m, rules, calls)


@jit_inner
def _notice(m: Any, rules: Any, calls: Any, page: int, frame: int) -> bool:
    """An observed page is used: its timestamp is there to be read, so that it costs nothing."""
    m.frames[frame] &= ~np.uint8(WATCHED)
    m.count[NOTIFICATIONS] += 1
    if calls.eviction(calls.eviction_own, near_events.NOTIFICATION | page << EVENT_BITS) == FAILED:
        return False
    return _observe(m, rules, calls)


@jit_inner
def _observe(m: Any, rules: Any, calls: Any) -> bool:
    if rules.wants_observe:
        page = calls.eviction(calls.eviction_own, near_events.OBSERVE)
        if page == FAILED:
            return False
        if 0 <= page < len(m.where) and m.where[page] >= 0:
            m.frames[m.where[page]] |= WATCHED
    return True
