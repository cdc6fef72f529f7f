"""The compiled walk: touches one after another, in the order in which the trace has them.

touch ── near ─────────────────────────────────────▶ hit
      └─ absent ── room? ── no: candidate ── place ── STAY    another candidate, MOST_STAYS times at most
                                                   ├─ MIDDLE  if it is full: nobody, the oldest, or whom the policy names
                                                   └─ FAR     written if dirty, else dropped
                   bring it near, from the middle or from the SSD
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidegate.jit import jit, jit_inner
from tidegate.mechanism import events as near_events
from tidegate.mechanism.tiers.distances import FILLED, WANTED, measure
from tidegate.mechanism.tiers.events import (
    ASKED,
    EVENT_BITS,
    FAILED,
    FAR,
    MIDDLE,
    NOBODY,
    PLACE,
    RETURN,
    SAMPLES,
    SPILL,
    STAY,
    TOUCH,
    VICTIM,
)
from tidegate.mechanism.tiers.service import begin_launch, begin_miss, compute, drain, serve, write_storage
from tidegate.mechanism.tiers.state import (
    COMPUTE,
    DIRTY,
    DROPPED,
    EVICTIONS,
    FAR_READS,
    HAND,
    HITS,
    IN_MIDDLE,
    LOOKUPS,
    MIDDLE_HITS,
    MIDDLE_USED,
    MIDDLE_WRITTEN,
    NEAR,
    NEAR_USED,
    NEAR_WRITTEN,
    NOTIFICATIONS,
    NOW,
    REFERENCED,
    SPILLED,
    STAYS,
    TO_FAR,
    TO_MIDDLE,
    TOUCHES,
    WASTED,
    WATCHED,
)

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


class Calls(NamedTuple):
    """The policies, as C functions with the addresses of their data."""

    placement: Any
    own: int
    eviction: Any
    eviction_own: int


@jit
def walk(m: Any, rules: Any, calls: Any, costs: Any, pages: Any, writes: Any, sizes: Any, uses: Any) -> int:
    """Every touch of a segment; FINISHED, or why it stopped."""
    i = 0
    while i < len(pages):
        if m.sampling[WANTED] == 0 and not rules.wants_touch:
            i = _hits(m, costs.byte, pages, writes, sizes, i)
            if i == len(pages):
                break
        if len(uses):
            m.uses[pages[i]] = uses[i]
        stopped = _touch(m, rules, calls, costs, pages[i], writes[i], sizes[i])
        if stopped != FINISHED:
            return stopped
        i += 1
    return FINISHED


@jit_inner
def _hits(m: Any, per_byte: float, pages: Any, writes: Any, sizes: Any, i: int) -> int:
    """Touches of near pages that nobody has to hear of, up to the first that is not one."""
    flags, last, first, now, total = m.flags, m.last, i, m.count[TOUCHES], 0
    while i < len(pages):
        page = np.uint64(pages[i])
        if flags[page] & (NEAR | WATCHED) != NEAR:
            break
        flags[page] |= REFERENCED | (DIRTY if writes[i] else 0)
        total += sizes[i]
        now += 1
        last[page] = now
        i += 1
    m.count[TOUCHES] = now
    m.count[HITS] += i - first
    m.clock[COMPUTE] += total * per_byte
    m.clock[NOW] += total * per_byte
    return i


@jit_inner
def _touch(m: Any, rules: Any, calls: Any, costs: Any, page: int, write: int, size: int) -> int:
    """Any touch."""
    m.count[TOUCHES] += 1
    now = m.count[TOUCHES]
    if m.sampling[WANTED] > 0 and measure(m, page, now):
        if calls.placement(calls.own, SAMPLES) == FAILED:
            return POLICY_FAILED
        m.sampling[FILLED] = 0
    compute(m, costs, size)
    flags = m.flags[page]
    if flags & NEAR:
        m.count[HITS] += 1
        m.flags[page] = flags | REFERENCED | (DIRTY if write else 0)
        m.last[page] = now
        if flags & WATCHED and not _notice(m, rules, calls, page):
            return POLICY_FAILED
    else:
        stopped = _miss(m, rules, calls, costs, page)
        if stopped != FINISHED:
            return stopped
        m.flags[page] = NEAR | (flags & DIRTY) | (DIRTY if write else 0)
        m.last[page] = now
        if not rules.clock and not rules.chooses and not _arrived(m, rules, calls, page):
            return POLICY_FAILED
    if rules.wants_touch and calls.placement(calls.own, TOUCH | page << EVENT_BITS) == FAILED:
        return POLICY_FAILED
    return FINISHED


@jit
def launch(m: Any, costs: Any) -> None:
    """A launch begins when the one before is over."""
    begin_launch(m, costs)


@jit
def finish(m: Any) -> None:
    """The last launch is over."""
    drain(m)


@jit_inner
def _miss(m: Any, rules: Any, calls: Any, costs: Any, page: int) -> int:
    begin_miss(m)
    c = m.count
    if m.left[page] and rules.wants_return and calls.placement(calls.own, RETURN | page << EVENT_BITS) == FAILED:
        return POLICY_FAILED
    far = not m.flags[page] & IN_MIDDLE
    if not far:
        # out of the middle first, so that the victim can have its room
        _unlink(m, page)
        c[MIDDLE_USED] -= 1
    c[LOOKUPS] += rules.middle > 0
    c[WASTED] += far and rules.middle > 0
    c[FAR_READS if far else MIDDLE_HITS] += 1
    out, frame = STAY, c[NEAR_USED]
    if c[NEAR_USED] < rules.near:
        c[NEAR_USED] += 1
        if rules.clock:
            m.ring[frame] = page
    else:
        stopped, out = _evict(m, rules, calls, costs, page)
        if stopped != FINISHED:
            return stopped
    serve(m, costs, far, out)
    return FINISHED


@jit_inner
def _evict(m: Any, rules: Any, calls: Any, costs: Any, page: int) -> Any:
    """Find a victim and send it off; where bytes go, for the sake of their cost."""
    before = -1
    for attempt in range(rules.most_stays + 1):
        victim = _candidate(m, rules, calls)
        if victim < 0 or victim >= len(m.flags) or not m.flags[victim] & NEAR:
            return POLICY_FAILED if victim == FAILED else BAD_VICTIM, STAY
        to = calls.placement(calls.own, PLACE | victim << EVENT_BITS)
        if to == FAILED:
            return POLICY_FAILED, STAY
        if to < STAY or to > FAR:
            return BAD_PLACE, STAY
        if to != STAY:
            break
        if attempt == rules.most_stays or victim == before:
            to = MIDDLE  # it has to go, and the middle is the nearest there is
            break
        m.count[STAYS] += 1
        before = victim
        if not _pass_over(m, rules, calls, victim):
            return POLICY_FAILED, STAY
    if rules.clock:
        m.ring[m.hand[HAND]] = page
        m.hand[HAND] = m.hand[HAND] + 1 if m.hand[HAND] + 1 < rules.near else 0
    elif not rules.chooses and calls.eviction(calls.eviction_own, near_events.EVICTION | victim << EVENT_BITS) == FAILED:
        return POLICY_FAILED, STAY
    return _leave(m, rules, calls, costs, victim, to)


@jit_inner
def _candidate(m: Any, rules: Any, calls: Any) -> int:
    if rules.chooses:
        return calls.placement(calls.own, VICTIM)
    if not rules.clock:
        return calls.eviction(calls.eviction_own, near_events.VICTIM)
    hand = m.hand[HAND]
    while m.flags[m.ring[hand]] & REFERENCED:
        m.flags[m.ring[hand]] ^= REFERENCED
        hand = hand + 1 if hand + 1 < rules.near else 0
    m.hand[HAND] = hand
    return m.ring[hand]


@jit_inner
def _pass_over(m: Any, rules: Any, calls: Any, victim: int) -> bool:
    """The candidate stays. CLOCK's hand moves on; another policy is told of it as of a page that was just asked for."""
    if rules.clock:
        m.hand[HAND] = m.hand[HAND] + 1 if m.hand[HAND] + 1 < rules.near else 0
        return True
    if rules.chooses:
        return True
    return calls.eviction(calls.eviction_own, near_events.FAULT | victim << EVENT_BITS) != FAILED


@jit_inner
def _leave(m: Any, rules: Any, calls: Any, costs: Any, victim: int, to: int) -> Any:
    """The victim goes to the middle, if it may and there is room, else far."""
    c = m.count
    c[EVICTIONS] += 1
    m.left[victim] = c[TOUCHES]
    dirty = m.flags[victim] & DIRTY
    if to == MIDDLE and rules.middle and (c[MIDDLE_USED] < rules.middle or rules.makes_room != NOBODY):
        if c[MIDDLE_USED] == rules.middle:
            stopped = _spill(m, rules, calls, costs)
            if stopped != FINISHED:
                return stopped, STAY
        m.flags[victim] = IN_MIDDLE | dirty
        _append(m, victim)
        c[MIDDLE_USED] += 1
        c[TO_MIDDLE] += 1
        return FINISHED, MIDDLE
    c[TO_FAR] += 1
    m.flags[victim] = 0
    c[NEAR_WRITTEN if dirty else DROPPED] += 1
    return FINISHED, FAR if dirty else STAY


@jit_inner
def _spill(m: Any, rules: Any, calls: Any, costs: Any) -> int:
    """A page leaves the middle for the SSD."""
    page = m.after[len(m.flags)] - 1
    if rules.makes_room == ASKED:
        page = calls.placement(calls.own, SPILL)
        if page < 0 or page >= len(m.flags) or not m.flags[page] & IN_MIDDLE:
            return POLICY_FAILED if page == FAILED else BAD_SPILL
    _unlink(m, page)
    m.count[MIDDLE_USED] -= 1
    m.count[SPILLED] += 1
    if m.flags[page] & DIRTY:
        m.count[MIDDLE_WRITTEN] += 1
        write_storage(m, costs)
    m.flags[page] = 0
    return FINISHED


# Eviction policies of the project, in place of CLOCK


@jit_inner
def _arrived(m: Any, rules: Any, calls: Any, page: int) -> bool:
    """Tell the eviction policy of a page that came near."""
    if calls.eviction(calls.eviction_own, near_events.FAULT | page << EVENT_BITS) == FAILED:
        return False
    return _observe(m, rules, calls)


@jit_inner
def _notice(m: Any, rules: Any, calls: Any, page: int) -> bool:
    """An observed page is used: its timestamp is there to be read, so that it costs nothing."""
    m.flags[page] &= ~WATCHED
    m.count[NOTIFICATIONS] += 1
    if calls.eviction(calls.eviction_own, near_events.NOTIFICATION | page << EVENT_BITS) == FAILED:
        return False
    return _observe(m, rules, calls)


@jit_inner
def _observe(m: Any, rules: Any, calls: Any) -> bool:
    if rules.wants_observe:
        page = calls.eviction(calls.eviction_own, near_events.OBSERVE)
        if 0 <= page < len(m.flags) and m.flags[page] & NEAR:
            m.flags[page] |= WATCHED
    return True


# The middle's FIFO: links are kept one higher than they are, so that 0 is none; entry n is the two ends


@jit_inner
def _append(m: Any, page: int) -> None:
    end = len(m.flags)
    last = m.before[end]
    m.before[page], m.after[page] = last, 0
    if last:
        m.after[last - 1] = page + 1
    else:
        m.after[end] = page + 1
    m.before[end] = page + 1


@jit_inner
def _unlink(m: Any, page: int) -> None:
    end = len(m.flags)
    after, before = m.after[page], m.before[page]
    if before:
        m.after[before - 1] = after
    else:
        m.after[end] = after
    if after:
        m.before[after - 1] = before
    else:
        m.before[end] = before
