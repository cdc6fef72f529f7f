"""The compiled walk: touches one after another, in the order in which the trace has them.

touch ── near ─────────────────────────────────────▶ hit
      └─ absent ── room? ── no: candidate ── place ── STAY    another candidate, most_stays times at most
                                                   ├─ MIDDLE  if it is full: nobody, the oldest, or whom the policy names
                                                   └─ FAR     written if dirty, else dropped
                   bring it near, from the middle or from the SSD

At the end what is dirty in near and middle memory is written: a program whose results never reach
their store is not done.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidegate.compiled.bits import flagged, lowest, popcount, unflag
from tidegate.compiled.intrinsics import call_at, fetch_ahead
from tidegate.compiled.jit import jit, jit_within
from tidegate.policies.interface import events as near_events
from tidegate.policies.interface.tier_events import (
    EVENT_BITS,
    FAILED,
    KNOWN,
    PLACE,
    RETURN,
    SAMPLES,
    SPILL,
    TOUCH,
    VICTIM,
)
from tidegate.policies.interface.tier_policy import ASKED, FAR, MIDDLE, NOBODY, STAY
from tidegate.simulation.tiers.distances import measure
from tidegate.simulation.tiers.service import (
    BYTE,
    begin_launch,
    begin_miss,
    compute,
    drain,
    flush_page,
    serve,
    wait_for_writes,
    write_storage,
)
from tidegate.simulation.tiers.state import (
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
    LOOK,
    LOOKUPS,
    MIDDLE_FLUSHED,
    MIDDLE_HITS,
    MIDDLE_USED,
    MIDDLE_WRITTEN,
    NEAR_FLUSHED,
    NEAR_USED,
    NEAR_WRITTEN,
    NEW,
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


(
    NEAR,
    MIDDLE_ROOM,
    MAKES_ROOM,
    MOST_STAYS,
    CLOCK,
    CHOOSES,
    WANTS_RETURN,
    WANTS_TOUCH,
    WANTS_OBSERVE,
    RECORDS,
) = range(10)


class Calls(NamedTuple):
    """The policies: addresses of their C functions and of their data."""

    placement: int
    own: int
    eviction: int
    eviction_own: int


AHEAD = 8  # touches whose pages' history is fetched together, before it is needed


@jit
def walk(m: Any, calls: Any, touches: Any, next_uses: Any) -> int:
    """Every touch of a segment; FINISHED, or why it stopped."""
    return _walk(m, calls, touches, next_uses)


@jit_within
def _walk(m: Any, calls: Any, touches: Any, next_uses: Any) -> int:
    # nobody has to hear of a hit, once no more pairs are wanted
    quiet = not m.rules[WANTS_TOUCH] and not m.rules[RECORDS] and len(next_uses) == 0
    i = fetched = 0
    end = len(touches.page)
    while i < end:
        if quiet and m.sampling[WANTED] == 0:
            i = _hits(m, touches, i)
            if i == end:
                break
            if i + AHEAD > fetched:
                fetched = max(fetched, i + 1)
                _fetch_histories(m, touches.page, fetched)
                fetched += AHEAD
            m.count[TOUCHES] += 1
            compute(m, touches.bytes[i])
            stopped = _bring(m, calls, np.int64(touches.page[i]), touches.write[i])
            if stopped != FINISHED:
                return stopped
            i += 1
            continue
        page = np.int64(touches.page[i])
        if len(next_uses):
            m.uses[page] = next_uses[i]
        stopped = _touch(m, calls, page, touches.write[i], touches.bytes[i])
        if stopped != FINISHED:
            return stopped
        if m.rules[RECORDS]:
            m.last[page] = m.count[TOUCHES]
            m.touched[page] += 1
            m.reference[page] = touches.reference[i]
        i += 1
    return FINISHED


@jit_within
def _hits(m: Any, touches: Any, i: int) -> int:
    """Touches of near pages that nobody has to hear of, up to the first that is not one."""
    pages, writes, sizes, where, frames = (
        touches.page,
        touches.write,
        touches.bytes,
        m.where,
        m.frames,
    )
    first, total = i, 0
    while i < len(pages):
        at = np.uint64(i)  # never counted from the end
        frame = where[pages[at]]
        if frame < 0:
            break
        frames[np.uint64(frame)] |= DIRTY | REFERENCED if writes[at] else REFERENCED
        total += sizes[at]
        i += 1
    m.count[TOUCHES] += i - first
    m.count[HITS] += i - first
    m.clock[COMPUTE] += total * m.costs[BYTE]
    m.clock[NOW] += total * m.costs[BYTE]
    return i


@jit_within
def _fetch_histories(m: Any, pages: Any, first: int) -> None:
    """Fetch what is kept of the absent pages among some touches to come.

    Without it every miss waits for memory.
    """
    last = len(pages) - 1
    for i in range(first, first + AHEAD):
        fetch_ahead(m.where, np.int64(pages[np.uint64(min(i + 2 * AHEAD, last))]))
        page = np.int64(pages[np.uint64(min(i, last))])
        at = np.int64(m.where[page])
        # the first page's, of which nobody has to think, if it is near
        fetch_ahead(m.history, 2 * page & at >> 63)
        place = IN_MIDDLE - at
        fetch_ahead(m.queue, place & ~(place >> 63))


@jit_within
def _touch(m: Any, calls: Any, page: int, write: int, size: int) -> int:
    """Any touch."""
    m.count[TOUCHES] += 1
    if m.sampling[WANTED] > 0 and measure(m, page, m.count[TOUCHES]):
        if call_at(calls.placement, calls.own, SAMPLES) == FAILED:
            return POLICY_FAILED
        m.sampling[FILLED] = 0
    compute(m, size)
    frame = m.where[page]
    if frame < 0:
        stopped = _bring(m, calls, page, write)
        if stopped != FINISHED:
            return stopped
    else:
        m.count[HITS] += 1
        flags = m.frames[frame]
        m.frames[frame] = flags | REFERENCED | (DIRTY if write else 0)
        if flags & WATCHED and not _notice(m, calls, page, frame):
            return POLICY_FAILED
    if (
        m.rules[WANTS_TOUCH]
        and call_at(calls.placement, calls.own, TOUCH | page << EVENT_BITS) == FAILED
    ):
        return POLICY_FAILED
    if m.sampling[WANTED] > 0:
        # now, because a policy that is told of the miss may ask for the touch before
        m.last[page] = m.count[TOUCHES]
    return FINISHED


@jit
def launch(m: Any) -> None:
    """A launch begins when the one before is over."""
    begin_launch(m)


@jit
def settle(m: Any) -> None:
    """All misses of a launch are served."""
    drain(m)


@jit
def finish(m: Any, flush: bool) -> None:
    """The run is over; ``flush``: and all results are in the far tier."""
    if not flush:
        return
    for frame in range(m.count[NEAR_USED]):
        if m.frames[frame] & DIRTY:
            m.count[NEAR_FLUSHED] += 1
            flush_page(m, True)
    for place in range(m.hand[HEAD], m.hand[TAIL]):
        if m.queue[place] >= 0 and m.queue[place] & 1:
            m.count[MIDDLE_FLUSHED] += 1
            flush_page(m, False)
    wait_for_writes(m)


@jit_within
def _bring(m: Any, calls: Any, page: int, write: int) -> int:
    """Bring a page near that is touched and absent: FINISHED, or why not."""
    begin_miss(m)
    c, flags = m.count, np.uint8(DIRTY if write else 0)
    if m.rules[WANTS_RETURN] and m.where[page] != NEW:
        answer = call_at(calls.placement, calls.own, RETURN | page << EVENT_BITS)
        if answer == FAILED:
            return POLICY_FAILED
        flags |= KEPT if answer == KNOWN else 0
    far = m.where[page] > IN_MIDDLE
    if not far:
        # out of the middle first, so that the victim can have its room
        flags |= DIRTY if _take(m, IN_MIDDLE - np.int64(m.where[page])) else 0
    c[LOOKUPS] += m.rules[MIDDLE_ROOM] > 0
    c[WASTED] += far and m.rules[MIDDLE_ROOM] > 0
    c[FAR_READS if far else MIDDLE_HITS] += 1
    out, frame = STAY, c[NEAR_USED]
    if frame < m.rules[NEAR]:
        c[NEAR_USED] += 1
    else:
        stopped, frame, out = _evict(m, calls)
        if stopped != FINISHED:
            return stopped
    serve(m, far, out)
    m.where[page], m.held[frame], m.frames[frame] = frame, page, flags
    if not m.rules[CLOCK] and not m.rules[CHOOSES] and not _arrived(m, calls, page):
        return POLICY_FAILED
    return FINISHED


@jit_within
def _evict(m: Any, calls: Any) -> Any:
    """Find a page that leaves and send it off: why not, its frame, and where bytes go, for the sake
    of their cost.
    """
    stays, before = 0, -1
    while True:
        if m.rules[CLOCK]:
            frame, stays = _sweep(m, stays)
        else:
            frame = _named(m, calls)
            if frame < 0:
                return POLICY_FAILED if frame == FAILED else BAD_VICTIM, -1, STAY
        page = m.held[frame]
        to = (
            STAY
            if m.frames[frame] & KEPT
            else call_at(calls.placement, calls.own, PLACE | page << EVENT_BITS)
        )
        if to < STAY or to > FAR:
            return POLICY_FAILED if to == FAILED else BAD_PLACE, -1, STAY
        if to == STAY and (stays == m.rules[MOST_STAYS] or frame == before):
            to = MIDDLE  # it has to go, and the middle is the nearest there is
        if to != STAY:
            break
        stays, before = stays + 1, frame
        if not _pass_over(m, calls, page):
            return POLICY_FAILED, -1, STAY
    m.count[STAYS] += stays
    if m.rules[CLOCK]:
        _step(m)
    elif (
        not m.rules[CHOOSES]
        and call_at(calls.eviction, calls.eviction_own, near_events.EVICTION | page << EVENT_BITS)
        == FAILED
    ):
        return POLICY_FAILED, -1, STAY
    stopped, out = _leave(m, calls, page, m.frames[frame] & DIRTY, to)
    return stopped, frame, out


# Candidates

_ALL = ~np.uint64(0)


@jit_within
def _sweep(m: Any, stays: Any) -> Any:
    """CLOCK's hand goes on to a page that was not used since it came by last, past those known to
    stay, if they may.

    Many frames at a time, one bit of each: which one it will be is what a processor could not guess
    frame by frame.
    """
    frames, at, most, near = m.frames, m.hand[HAND], m.rules[MOST_STAYS], m.rules[NEAR]
    while True:
        there = min(LOOK, near - at)
        ones = _ALL >> np.uint64(LOOK - there)
        used, kept = flagged(frames, at, REFERENCED), flagged(frames, at, KEPT)
        stop, staying = ~(used | kept) & ones, kept & ~used & ones
        passed = staying & _below(stop)
        # the hand has to stop at a page that would stay
        if np.int64(popcount(passed)) > most - stays:
            stop = _one_of(passed, most - stays)
            passed = staying & _below(stop)
        unflag(frames, at, min(lowest(stop), there), REFERENCED)
        stays += np.int64(popcount(passed))
        if stop:
            break
        at = at + there if at + there < near else 0
    ahead = at + lowest(stop & (stop - np.uint64(1)))  # the next victim is likely this one
    fetch_ahead(m.history, 2 * np.int64(m.held[ahead if ahead < near else 0]))
    at += lowest(stop)
    m.hand[HAND] = at
    return at, stays


@jit_within
def _below(bits: Any) -> Any:
    """All bits below the lowest of these; all if there is none."""
    return (bits & (~bits + np.uint64(1))) - np.uint64(1)


@jit_within
def _one_of(bits: Any, number: Any) -> Any:
    """Of the bits that are set, this one, counted from 0: in which half is it, in which quarter,
    and so on.
    """
    at = np.uint64(0)
    for half in (32, 16, 8, 4, 2, 1):
        low = np.int64(popcount(bits >> at & (_ALL >> np.uint64(64 - half))))
        above = number >= low
        number -= low * above
        at += np.uint64(half * above)
    return np.uint64(1) << at


@jit_within
def _step(m: Any) -> None:
    m.hand[HAND] = m.hand[HAND] + 1 if m.hand[HAND] + 1 < m.rules[NEAR] else 0


@jit_within
def _named(m: Any, calls: Any) -> int:
    """The frame of the page that a policy names; FAILED if it raised, less if that page is not
    near.
    """
    if m.rules[CHOOSES]:
        page = call_at(calls.placement, calls.own, VICTIM)
    else:
        page = call_at(calls.eviction, calls.eviction_own, near_events.VICTIM)
    if page == FAILED:
        return FAILED
    return m.where[page] if 0 <= page < len(m.where) and m.where[page] >= 0 else FAILED - 1


@jit_within
def _pass_over(m: Any, calls: Any, page: int) -> bool:
    """The candidate stays.

    CLOCK's hand moves on; another policy is told of it as of a page that was just asked for.
    """
    if m.rules[CLOCK]:
        _step(m)
        return True
    if m.rules[CHOOSES]:
        return True
    return (
        call_at(calls.eviction, calls.eviction_own, near_events.FAULT | page << EVENT_BITS)
        != FAILED
    )


# Ways out


@jit_within
def _leave(m: Any, calls: Any, page: int, dirty: int, to: int) -> Any:
    """The page goes to the middle, if it may and there is room, else far."""
    c = m.count
    c[EVICTIONS] += 1
    m.history[2 * page] = c[TOUCHES]
    if (
        to == MIDDLE
        and m.rules[MIDDLE_ROOM]
        and (c[MIDDLE_USED] < m.rules[MIDDLE_ROOM] or m.rules[MAKES_ROOM] != NOBODY)
    ):
        if c[MIDDLE_USED] == m.rules[MIDDLE_ROOM]:
            stopped = _spill(m, calls)
            if stopped != FINISHED:
                return stopped, STAY
        _put(m, page, dirty)
        c[TO_MIDDLE] += 1
        return FINISHED, MIDDLE
    c[TO_FAR] += 1
    m.where[page] = FAR_AWAY
    c[NEAR_WRITTEN if dirty else DROPPED] += 1
    return FINISHED, FAR if dirty else STAY


@jit_within
def _spill(m: Any, calls: Any) -> int:
    """A page leaves the middle for the SSD."""
    if m.rules[MAKES_ROOM] == ASKED:
        page = call_at(calls.placement, calls.own, SPILL)
        if page < 0 or page >= len(m.where) or m.where[page] > IN_MIDDLE:
            return POLICY_FAILED if page == FAILED else BAD_SPILL
        place = IN_MIDDLE - np.int64(m.where[page])
    else:
        place = m.hand[HEAD]
        while m.queue[place] < 0:
            place += 1
        m.hand[HEAD] = place
        page = np.int64(m.queue[place] >> 1)
    m.count[SPILLED] += 1
    if _take(m, place):
        m.count[MIDDLE_WRITTEN] += 1
        write_storage(m)
    m.where[page] = FAR_AWAY
    return FINISHED


# The middle: pages in the order in which they came. Who leaves, leaves his place empty.


@jit_within
def _put(m: Any, page: int, dirty: int) -> None:
    if m.hand[TAIL] == len(m.queue):
        _close_up(m)
    place = m.hand[TAIL]
    m.queue[place] = 2 * page + (dirty != 0)
    m.where[page] = IN_MIDDLE - place
    m.hand[TAIL] = place + 1
    m.count[MIDDLE_USED] += 1


@jit_within
def _take(m: Any, place: int) -> int:
    """A page leaves its place in the middle; is it dirty?"""
    dirty = m.queue[place] & 1
    m.queue[place] = -1
    m.count[MIDDLE_USED] -= 1
    return dirty


@jit_within
def _close_up(m: Any) -> None:
    """No more room at the tail: the empty places, most of all, are given up."""
    kept = 0
    for place in range(m.hand[HEAD], m.hand[TAIL]):
        entry = m.queue[place]
        if entry >= 0:
            m.queue[kept] = entry
            m.where[entry >> 1] = IN_MIDDLE - kept
            kept += 1
    m.hand[HEAD], m.hand[TAIL] = 0, kept


# Eviction policies of the project, in place of CLOCK


@jit_within
def _arrived(m: Any, calls: Any, page: int) -> bool:
    """Tell the eviction policy of a page that came near."""
    if (
        call_at(calls.eviction, calls.eviction_own, near_events.FAULT | page << EVENT_BITS)
        == FAILED
    ):
        return False
    return _observe(m, calls)


@jit_within
def _notice(m: Any, calls: Any, page: int, frame: int) -> bool:
    """An observed page is used: its timestamp is there to be read, so that it costs nothing."""
    m.frames[frame] &= ~np.uint8(WATCHED)
    m.count[NOTIFICATIONS] += 1
    if (
        call_at(calls.eviction, calls.eviction_own, near_events.NOTIFICATION | page << EVENT_BITS)
        == FAILED
    ):
        return False
    return _observe(m, calls)


@jit_within
def _observe(m: Any, calls: Any) -> bool:
    if m.rules[WANTS_OBSERVE]:
        page = call_at(calls.eviction, calls.eviction_own, near_events.OBSERVE)
        if page == FAILED:
            return False
        if 0 <= page < len(m.where) and m.where[page] >= 0:
            m.frames[m.where[page]] |= WATCHED
    return True
