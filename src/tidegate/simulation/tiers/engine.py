"""The compiled walk: touches one after another, in the order of the trace.

    touch ── near ──▶ hit
          └─ absent ── room? ── no: candidate ── place ── STAY    the next, at most most_stays times
                                                       ├─ MIDDLE  if full, a page of it is spilled
                                                       └─ FAR     written if dirty, else dropped
                       bring it near, from the middle or from the SSD

Candidates: candidates.py. Ways out: middle.py. At the end dirty pages of near and middle memory are
written: a program is not done before its results are in the far tier.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.intrinsics import fetch_ahead
from tidegate.compiled.jit import jit, jit_within
from tidegate.policies.interface.events import EVICTION
from tidegate.policies.interface.tier_policy import (
    FAILED,
    KNOWN,
    PLACE,
    RETURN,
    SAMPLES,
    TOUCH,
    Tier,
)
from tidegate.simulation.tiers.candidates import (
    announce_arrival,
    announce_use,
    call_eviction,
    call_placement,
    next_candidate,
    pass_over,
    step_hand,
)
from tidegate.simulation.tiers.distances import measure
from tidegate.simulation.tiers.middle import cache_read, leave, take
from tidegate.simulation.tiers.recorded_moves import record_came
from tidegate.simulation.tiers.service import (
    begin_launch,
    begin_miss,
    compute,
    drain,
    flush_page,
    serve,
    wait_for_writes,
)
from tidegate.simulation.tiers.state import (
    BAD_PLACE,
    BAD_VICTIM,
    DIRTY,
    FINISHED,
    IN_MIDDLE,
    KEPT,
    POLICY_FAILED,
    REFERENCED,
    WATCHED,
)

AHEAD = 8  # touches whose pages' history is fetched together, before it is needed


@jit
def walk(memory: Any, policies: Any, touches: Any, next_uses: Any) -> int:
    """Make every touch of a segment; return FINISHED, or why the walk stopped."""
    return _walk(memory, policies, touches, next_uses)


@jit_within
def _walk(memory: Any, policies: Any, touches: Any, next_uses: Any) -> int:
    constants, sampling = memory.constants[0], memory.sampling[0]
    # hits need no call, once no more pairs are wanted
    quiet = not constants.wants_touch and not constants.records and len(next_uses) == 0
    i = fetched = 0
    end = len(touches.page)
    while i < end:
        if quiet and sampling.wanted == 0:
            i = _hits(memory, touches, i)
            if i == end:
                break
            if i + AHEAD > fetched:
                fetched = max(fetched, i + 1)
                _fetch_histories(memory, touches.page, fetched)
                fetched += AHEAD
            memory.counts[0].touches += 1
            compute(memory, touches.bytes[i])
            code = _bring(memory, policies, np.int64(touches.page[i]), touches.write[i])
            if code != FINISHED:
                return code
            i += 1
            continue
        page = np.int64(touches.page[i])
        if constants.wants_touch:  # the policy looks at what it keeps of every page
            later = np.int64(touches.page[np.uint64(min(i + AHEAD, end - 1))])
            fetch_ahead(memory.history, memory.history.shape[1] * later)
        if len(next_uses):
            memory.uses[page] = next_uses[i]
        code = _touch(memory, policies, page, touches.write[i], touches.bytes[i])
        if code != FINISHED:
            return code
        if constants.records:
            memory.last[page] = memory.counts[0].touches
            memory.touched[page] += 1
            memory.reference[page] = touches.reference[i]
        i += 1
    return FINISHED


@jit_within
def _hits(memory: Any, touches: Any, i: int) -> int:
    """Make touches of near pages without calls, up to the first miss; return its place."""
    pages, writes, sizes = touches.page, touches.write, touches.bytes
    where, frames = memory.where, memory.frames
    first, total = i, 0
    while i < len(pages):
        at = np.uint64(i)  # never counted from the end
        frame = where[pages[at]]
        if frame < 0:
            break
        frames[np.uint64(frame)] |= DIRTY | REFERENCED if writes[at] else REFERENCED
        total += sizes[at]
        i += 1
    counts = memory.counts[0]
    counts.touches += i - first
    counts.hits += i - first
    compute(memory, total)
    return i


@jit_within
def _fetch_histories(memory: Any, pages: Any, first: int) -> None:
    """Fetch what is kept of the absent pages among some touches to come.

    Without it every miss waits for memory.
    """
    last = len(pages) - 1
    for i in range(first, first + AHEAD):
        fetch_ahead(memory.where, np.int64(pages[np.uint64(min(i + 2 * AHEAD, last))]))
        page = np.int64(pages[np.uint64(min(i, last))])
        at = np.int64(memory.where[page])
        # of a near page, the first page's: no branch to predict
        fetch_ahead(memory.history, memory.history.shape[1] * page & at >> 63)
        place = IN_MIDDLE - at
        fetch_ahead(memory.queue, place & ~(place >> 63))


@jit_within
def _touch(memory: Any, policies: Any, page: int, write: int, size: int) -> int:
    """Make any touch, with all calls that it needs."""
    counts, sampling = memory.counts[0], memory.sampling[0]
    counts.touches += 1
    if sampling.wanted > 0 and measure(memory, page, counts.touches):
        if call_placement(policies, SAMPLES, 0) == FAILED:
            return POLICY_FAILED
        sampling.filled = 0
    compute(memory, size)
    frame = memory.where[page]
    if frame < 0:
        code = _bring(memory, policies, page, write)
        if code != FINISHED:
            return code
    else:
        counts.hits += 1
        flags = memory.frames[frame]
        memory.frames[frame] = flags | REFERENCED | (DIRTY if write else 0)
        if flags & WATCHED and not announce_use(memory, policies, page, frame):
            return POLICY_FAILED
    if memory.constants[0].wants_touch and call_placement(policies, TOUCH, page) == FAILED:
        return POLICY_FAILED
    if sampling.wanted > 0:
        # not earlier, because a policy may read the touch before when it handles the miss
        memory.last[page] = counts.touches
    return FINISHED


@jit
def launch(memory: Any) -> None:
    """Begin a launch; the one before is over."""
    begin_launch(memory)


@jit
def settle(memory: Any) -> None:
    """Serve all misses of a launch."""
    drain(memory)


@jit
def finish(memory: Any, flush: bool) -> None:
    """End the run; with ``flush`` all results are written to the far tier."""
    if not flush:
        return
    counts, cursors = memory.counts[0], memory.cursors[0]
    for frame in range(counts.near_used):
        if memory.frames[frame] & DIRTY:
            counts.near_flushed += 1
            flush_page(memory, True)
            if memory.constants[0].inclusive and memory.copies[memory.held[frame]] >= 0:
                memory.queue[memory.copies[memory.held[frame]]] &= ~1  # it is outdated
    for place in range(cursors.head, cursors.tail):
        if memory.queue[place] >= 0 and memory.queue[place] & 1:
            counts.middle_flushed += 1
            flush_page(memory, False)
    wait_for_writes(memory)


@jit_within
def _bring(memory: Any, policies: Any, page: int, write: int) -> int:
    """Bring an absent page near that is touched; return FINISHED, or why not."""
    begin_miss(memory)
    counts, constants = memory.counts[0], memory.constants[0]
    flags = np.uint8(DIRTY if write else 0)
    if constants.wants_return and memory.history[page, 0]:  # it left near memory before
        answer = call_placement(policies, RETURN, page)
        if answer == FAILED:
            return POLICY_FAILED
        flags |= KEPT if answer == KNOWN else 0
    far = memory.where[page] > IN_MIDDLE
    if not far and constants.inclusive:
        memory.copies[page] = IN_MIDDLE - memory.where[page]
    elif not far:
        # out of the middle first, so that the victim can have its room
        flags |= DIRTY if take(memory, IN_MIDDLE - np.int64(memory.where[page])) else 0
    counts.lookups += constants.middle > 0
    counts.wasted_lookups += far and constants.middle > 0
    counts.far_reads += far
    counts.middle_hits += not far
    out, frame = Tier.STAY, counts.near_used
    if frame < constants.near:
        counts.near_used += 1
    else:
        code, frame, out = _evict(memory, policies)
        if code != FINISHED:
            return code
    read = np.int64(far)
    if far and constants.inclusive:
        read = cache_read(memory, policies, page)
    serve(memory, page, read, out)
    record_came(memory, page, far)
    memory.where[page], memory.held[frame], memory.frames[frame] = frame, page, flags
    if not constants.clock and not constants.chooses:
        return announce_arrival(memory, policies, page)
    return FINISHED


@jit_within
def _evict(memory: Any, policies: Any) -> Any:
    """Choose a page and send it off; return a code, its frame, and where bytes of it go."""
    constants = memory.constants[0]
    stays, before = 0, -1
    while True:
        frame, stays = next_candidate(memory, policies, stays)
        if frame < 0:
            return POLICY_FAILED if frame == FAILED else BAD_VICTIM, -1, Tier.STAY
        page = memory.held[frame]
        to = Tier.STAY
        if not memory.frames[frame] & KEPT:
            to = call_placement(policies, PLACE, np.int64(page))
        if to < Tier.STAY or to > Tier.FAR:
            return POLICY_FAILED if to == FAILED else BAD_PLACE, -1, Tier.STAY
        again = frame == before and not constants.clock  # a policy names it anew
        if to == Tier.STAY and (stays == constants.most_stays or again):
            to = Tier.MIDDLE  # it has to go, and the middle is the nearest there is
        if to != Tier.STAY:
            break
        stays, before = stays + 1, frame
        if not pass_over(memory, policies, page):
            return POLICY_FAILED, -1, Tier.STAY
    memory.counts[0].stays += stays
    if constants.clock:
        step_hand(memory)
    elif not constants.chooses and call_eviction(policies, EVICTION, np.int64(page)) == FAILED:
        return POLICY_FAILED, -1, Tier.STAY
    code, out = leave(memory, policies, page, memory.frames[frame] & DIRTY, to)
    return code, frame, out
