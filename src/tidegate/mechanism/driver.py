"""The driver: serial, one turn at a time. A turn serves a batch of faults, or carries out some prefetches.

    serve_faults ──▶ for each region of the batch, by address:
                       make_room ──▶ ask the policy for a victim, evict it
                       relay the fault · carry out requests · tree prefetch
                       migrate
    finish_turn  ──▶ pages arrive, stalled slots wake, exposed time is put to its parts

What leaves is gone when the turn begins; what comes is usable when it ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.jit import jit, jit_bare
from tidegate.mechanism.events import (
    ASK_ADVISE,
    ASK_COUNT,
    ASK_EVICT,
    ASK_OBSERVE,
    ASK_PREFETCH,
    ASK_THRESHOLD,
    EVENT_BITS,
    EVICTION,
    FAULT,
    LAUNCH,
    NO_TREE,
    NOTIFICATION,
    OBSERVE,
    PREFETCH,
    VICTIM,
)
from tidegate.mechanism.memory import PREFETCH_TURN, RUNNING, TIMELINE_ROWS
from tidegate.mechanism.observe import (
    bring_home,
    forget,
    leave_one_far,
    notice,
    take_samples,
    watch_leaving,
    watch_returning,
)
from tidegate.mechanism.pages import COMING, CPU_MAPPED, DIRTY, FAULTED, NEAR, REMOTE, TOUCHED, WANTED
from tidegate.mechanism.tree import want_subtrees

# Numba compiles a function anew for every constant it is called with; np.int64(…) keeps it to one.

# What a step answers. OK goes on; CUT ends this turn early and nothing is wrong; the others end the run.
OK, CUT, RAISED, NOT_RESIDENT = 0, 1, 2, 3


@jit_bare
def serve_faults(m: Any, k: Any, relay: Any) -> int:
    """Serve one batch: up to ``batch_faults`` raw faults, duplicates merged, sorted by address."""
    b = m.books[0]
    take = min(b.queue_n, k.batch_faults)
    started = m.slot_time[m.queue[0]]
    for i in range(b.queue_n):
        started = min(started, m.slot_time[m.queue[i]])
    begin_turn(m, max(b.driver_free, started))
    code = serve_notices(m, k, relay)
    if code != OK:
        return code
    b.fault_turn = 1
    b.batches += 1
    b.raw_faults += take
    b.turn_handling = k.batch_overhead
    n = 0
    for i in range(take):
        page = m.slot_page[m.queue[i]]
        if not m.page_state[page] & FAULTED:
            m.page_state[page] |= FAULTED
            m.batch_page[n] = page
            n += 1
    sort(m.batch_page, n)
    first = np.int64(0)
    while first < n and code == OK:
        region = m.batch_page[first] // k.pages_per_region
        last = first + 1
        while last < n and m.batch_page[last] // k.pages_per_region == region:
            last += 1
        code = serve_region(m, k, relay, region, first, last)
        if code == OK:
            first = last
    for i in range(first, n):  # a batch that was cut: the rest is raised again
        m.page_state[m.batch_page[i]] &= ~FAULTED & 0xFF
    end_turn(m, k)
    return OK if code == CUT else code


@jit_bare
def sort(values: Any, n: int) -> None:
    """Sort the first ``n`` values: a Shell sort, quick for a batch and a second quicker to compile than NumPy's."""
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            value = values[i]
            j = i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3


@jit_bare
def serve_region(m: Any, k: Any, relay: Any, region: int, first: int, last: int) -> int:
    """Serve the faulted pages ``m.batch_page[first:last]``, all of one region."""
    b = m.books[0]
    if m.resident[region] == 0:
        watch_returning(m, region)
    code = make_room(m, k, relay, region, last - first)
    if code != OK:
        return code
    m.pinned[region] = b.turn
    b.faults += last - first
    m.region_faults[region] += last - first
    code = tell(m, k, relay, np.int64(FAULT), region)
    if code == OK:
        code = evict_asked(m, k, relay)
    if code != OK:
        return code
    if b.threshold < NO_TREE:
        want_subtrees(m, k, region, first, last)
    if m.wants[1, PREFETCH] and wanted_pages(m, k, region) > 0:
        code = call(m, k, relay.prefetch, np.int64(1), np.int64(PREFETCH), region)
        if code == OK:
            code = evict_asked(m, k, relay)
        if code != OK:
            return code
    code, taken = room_for_wanted(m, k, relay, region, last - first, last - first)
    if code != OK:
        return code
    migrate(m, k, region, taken)
    return ask_observe(m, k, relay)


@jit_bare
def serve_notices(m: Any, k: Any, relay: Any) -> int:
    """Handle the uses that counters noticed: sampled pages come home, and policies are told."""
    b = m.books[0]
    n = b.notices_n
    b.notices_n = 0
    for i in range(n):
        what = m.notices[i]
        if what >= 0 and (m.sampled[what] == 0 or m.sampled[what] & 1):
            continue  # its region was evicted, or came home with another page
        region = what // k.pages_per_region if what >= 0 else -1 - what
        b.notifications += 1
        b.turn_policy += k.notification
        code = OK
        if what >= 0:  # a sample, which eviction or prefetch asked for
            m.pinned[region] = b.turn
            bring_home(m, k, region)
            if m.wants[0, NOTIFICATION]:
                code = call(m, k, relay.eviction, np.int64(0), np.int64(NOTIFICATION), region)
            if code == OK and m.wants[1, NOTIFICATION]:
                code = call(m, k, relay.prefetch, np.int64(1), np.int64(NOTIFICATION), region)
        else:  # a region that is used much over the link, which placement asked for
            m.counted[region] = -1
            b.counting_n -= 1
            if m.wants[2, NOTIFICATION]:
                code = call(m, k, relay.placement, np.int64(2), np.int64(NOTIFICATION), region)
        if code == OK:
            code = evict_asked(m, k, relay)
        if code == OK:
            code = ask_observe(m, k, relay)
        if code != OK:
            return code
    return OK


@jit_bare
def serve_notice_turn(m: Any, k: Any, relay: Any) -> int:
    """A turn for notifications alone."""
    b = m.books[0]
    begin_turn(m, max(b.driver_free, b.notice_from))
    code = serve_notices(m, k, relay)
    end_turn(m, k)
    return code


@jit_bare
def ask_observe(m: Any, k: Any, relay: Any) -> int:
    """Ask the eviction policy which region to observe, once memory is nearly full and while there is room to."""
    b = m.books[0]
    free = k.frames - b.frames_used
    if not m.wants[0, OBSERVE] or free > k.observe_most * (k.pages_per_region if k.by_page else 1):
        return OK
    if b.observed_n >= k.observe_most or b.sampled_n >= k.counters:
        return OK
    region = relay.eviction(m.own[0], OBSERVE)
    b.culprit, b.culprit_event = region, OBSERVE
    if b.request_n < 0:
        return RAISED
    if b.request_n > 0:
        carry_out(m, k)
    if region < 0:
        return OK
    if region >= m.resident.size or m.resident[region] == 0:
        return NOT_RESIDENT
    if m.observed[region] == 0 and m.pinned[region] != b.turn:
        take_samples(m, k, region)
    return OK


@jit_bare
def serve_prefetches(m: Any, k: Any, relay: Any) -> int:
    """Carry out some of the prefetches that were asked for, region by region."""
    b = m.books[0]
    begin_turn(m, max(b.driver_free, b.prefetch_from))
    b.fault_turn = 0
    for _ in range(min(PREFETCH_TURN, max(1, k.room // 2))):
        if b.prefetch_n == 0:
            break
        region = m.prefetch_ring[b.prefetch_head]
        pages = wanted_pages(m, k, region)
        if pages > 0:
            code = make_room(m, k, relay, region, pages)
            if code == CUT:
                break
            if code != OK:
                return code
            m.pinned[region] = b.turn
            code = tell(m, k, relay, np.int64(PREFETCH), region)
            if code == OK:
                code = evict_asked(m, k, relay)
            if code == OK:
                code, pages = room_for_wanted(m, k, relay, region, np.int64(0), pages)
            if code != OK:
                return code
            migrate(m, k, region, pages)
        m.prefetch_queued[region] = 0
        b.prefetch_head = (b.prefetch_head + 1) % m.prefetch_ring.size
        b.prefetch_n -= 1
    end_turn(m, k)
    return OK


@jit_bare
def wanted_pages(m: Any, k: Any, region: int) -> int:
    """How many pages of this region are to come that are wanted and did not fault?"""
    base = region * k.pages_per_region
    n = 0
    for page in range(base, base + m.region_pages[region]):
        if m.page_state[page] & (WANTED | FAULTED | NEAR | COMING) == WANTED:
            n += 1
    return n


@jit_bare
def room_for_wanted(m: Any, k: Any, relay: Any, region: int, faulted: int, taken: int) -> Any:
    """Where frames are pages, what is wanted beside the faults needs some too; answers a code and the frames taken.

    Policies that hear of an eviction may want still more. What there is no room for in this turn is wanted no longer.
    """
    code = OK
    while k.by_page and code == OK:
        more = faulted + wanted_pages(m, k, region) - taken
        if more <= 0:
            break
        code = make_room(m, k, relay, region, more)
        if code == OK:
            taken += more
        elif code == CUT:
            drop_wanted(m, k, region, taken - faulted)
            return OK, taken
    return code, taken


@jit_bare
def drop_wanted(m: Any, k: Any, region: int, keep: int) -> None:
    """Leave all wanted pages of this region where they are but the first few."""
    base = region * k.pages_per_region
    for page in range(base, base + m.region_pages[region]):
        if m.page_state[page] & (WANTED | FAULTED | NEAR | COMING) == WANTED:
            if keep == 0:
                m.page_state[page] &= ~WANTED & 0xFF
            else:
                keep -= 1


@jit_bare
def make_room(m: Any, k: Any, relay: Any, region: int, pages: int) -> int:
    """Take the frames for ``pages`` more pages of a region, evicting if too few are free.

    CUT: the victim was served in this turn. A region whose frame is the whole region needs one, once.
    """
    b = m.books[0]
    need = pages if k.by_page else 1
    if not k.by_page and m.resident[region] > 0:
        return OK
    while b.frames_used + need > k.frames:
        b.decisions += 1
        b.turn_policy += k.decision
        victim = relay.eviction(m.own[0], VICTIM)
        b.culprit, b.culprit_event = victim, VICTIM
        if b.request_n < 0:
            return RAISED
        if b.request_n > 0:
            carry_out(m, k)
        if victim < 0 or victim >= m.resident.size:
            return NOT_RESIDENT
        if m.pinned[victim] == b.turn:
            return CUT
        if m.resident[victim] == 0:
            return NOT_RESIDENT
        code = evict(m, k, relay, victim)
        if code != OK:
            return code
    b.frames_used += need
    b.frames_peak = max(b.frames_peak, b.frames_used)
    return OK


@jit_bare
def evict(m: Any, k: Any, relay: Any, region: int) -> int:
    """Send a region far. Every near page is copied back; with ``dirty_only`` just those that were written."""
    b = m.books[0]
    b.evictions += 1
    m.region_evictions[region] += 1
    code = tell(m, k, relay, np.int64(EVICTION), region)
    if code != OK:
        return code
    held = forget(m, k, region) if m.observed[region] > 0 else 0
    if k.observe_most > 0:
        watch_leaving(m, k, region)
    base = region * k.pages_per_region
    pages = dirty = untouched = 0
    for page in range(base, base + m.region_pages[region]):
        state = m.page_state[page]
        if state & NEAR:
            pages += 1
            if state & DIRTY:
                dirty += 1
            if not state & TOUCHED:
                untouched += 1
            m.page_state[page] = state & ~(NEAR | TOUCHED | DIRTY) & 0xFF
    back = dirty if k.dirty_only else pages
    b.pages_evicted += pages
    b.pages_written_back += back
    b.pages_unused += untouched
    b.turn_out += back * k.out_per_page
    m.resident[region] = 0
    b.frames_used -= pages + held if k.by_page else 1
    return OK


@jit_bare
def migrate(m: Any, k: Any, region: int, taken: int) -> None:
    """Set the region's faulted and wanted pages moving. ``taken``: for how many there is room."""
    b = m.books[0]
    base = region * k.pages_per_region
    pages = runs = mapped = prefetched = 0
    before = -2
    for page in range(base, base + m.region_pages[region]):
        state = m.page_state[page]
        if state & (FAULTED | WANTED) and not state & (NEAR | COMING):
            m.coming[b.coming_n] = page
            b.coming_n += 1
            pages += 1
            if page != before + 1:
                runs += 1
            before = page
            if state & CPU_MAPPED:
                mapped += 1
            if not state & FAULTED:
                prefetched += 1
            state |= COMING
        m.page_state[page] = state & ~(FAULTED | WANTED) & (~CPU_MAPPED & 0xFF if state & COMING else 0xFF)
    if k.by_page:
        b.frames_used -= taken - pages  # a policy may have left some where they are
    m.resident[region] += pages
    m.region_pages_in[region] += pages
    b.pages_in += pages
    b.runs_in += runs
    b.pages_prefetched += prefetched
    b.turn_handling += k.region_overhead + mapped * k.unmap_per_page
    b.turn_in += runs * k.run_overhead + pages * k.in_per_page


@jit_bare
def tell(m: Any, k: Any, relay: Any, event: int, region: int) -> int:
    """Relay an event to every policy that wants it."""
    code = OK
    if m.wants[0, event]:
        code = call(m, k, relay.eviction, np.int64(0), event, region)
    if code == OK and m.wants[1, event]:
        code = call(m, k, relay.prefetch, np.int64(1), event, region)
    if code == OK and m.wants[2, event]:
        code = call(m, k, relay.placement, np.int64(2), event, region)
    return code


@jit_bare
def call(m: Any, k: Any, policy: Any, which: int, event: int, region: int) -> int:
    """Call one policy and carry out what it asks for."""
    b = m.books[0]
    policy(m.own[which], event | region << EVENT_BITS)
    if b.request_n < 0:
        b.culprit, b.culprit_event = region, event
        return RAISED
    if b.request_n > 0:
        carry_out(m, k)
    return OK


@jit
def carry_out(m: Any, k: Any) -> None:
    """Do what policies asked for. Evictions are kept in the list for ``evict_asked``, which may call policies again."""
    b = m.books[0]
    kept = 0
    for i in range(b.request_n):
        verb, first, count, where = m.requests[i, 0], m.requests[i, 1], m.requests[i, 2], m.requests[i, 3]
        if verb == ASK_PREFETCH:
            want_range(m, k, first, count)
        elif verb == ASK_ADVISE:
            for page in range(first, first + count):
                if where:
                    m.page_state[page] |= REMOTE
                else:
                    m.page_state[page] &= ~REMOTE & 0xFF
        elif verb == ASK_THRESHOLD:
            b.threshold = first
        elif verb == ASK_OBSERVE:
            leave_one_far(m, k, first)
        elif verb == ASK_COUNT:
            b.count_threshold = first
        elif verb == ASK_EVICT:
            m.requests[kept, 0], m.requests[kept, 1] = ASK_EVICT, first
            kept += 1
    b.request_n = kept


@jit_bare
def evict_asked(m: Any, k: Any, relay: Any) -> int:
    """Evict what policies asked to be evicted, unless it is gone already or was served in this very turn."""
    b = m.books[0]
    while b.request_n > 0:
        b.request_n -= 1
        region = m.requests[b.request_n, 1]
        if m.resident[region] > 0 and m.pinned[region] != b.turn:
            code = evict(m, k, relay, region)
            if code != OK:
                return code
    return OK


@jit_bare
def want_range(m: Any, k: Any, first: int, count: int) -> None:
    """Mark pages as wanted and put their regions in line; what is near, coming or kept far is left alone."""
    b = m.books[0]
    for page in range(first, first + count):
        region = page // k.pages_per_region
        if page - region * k.pages_per_region >= m.region_pages[region]:
            continue  # the gap behind an object's end
        if m.page_state[page] & (NEAR | COMING | REMOTE):
            continue
        m.page_state[page] |= WANTED
        if not m.prefetch_queued[region]:
            m.prefetch_queued[region] = 1
            m.prefetch_ring[(b.prefetch_head + b.prefetch_n) % m.prefetch_ring.size] = region
            b.prefetch_n += 1


@jit_bare
def begin_turn(m: Any, start: float) -> None:
    b = m.books[0]
    b.turn += 1
    b.driver_busy = 1
    b.driver_free = start
    b.coming_n = 0
    b.turn_handling = b.turn_in = b.turn_out = b.turn_policy = 0.0


@jit_bare
def end_turn(m: Any, k: Any) -> None:
    """Close the turn's bill: how long it takes, and of what."""
    b = m.books[0]
    b.link_in_time += b.turn_in
    b.link_out_time += b.turn_out
    if k.pipelined and b.turn_out > 0:
        both = (b.turn_in / k.in_per_page + b.turn_out / k.out_per_page) * k.both_per_page
        b.turn_out = max(0.0, max(b.turn_out, both) - b.turn_in)  # only what sticks out behind the way in
    spent = b.turn_handling + b.turn_in + b.turn_out + b.turn_policy
    b.driver_time += spent
    b.driver_free += spent


@jit_bare
def finish_turn(m: Any, k: Any, blocks: Any, per_byte: float, remote: float) -> None:
    """The turn is over: pages arrive, slots that waited for them make their touch, and exposed time is accounted."""
    b = m.books[0]
    b.driver_busy = 0
    for i in range(b.coming_n):
        page = m.coming[i]
        m.page_state[page] = (m.page_state[page] | NEAR) & ~COMING & 0xFF
    exposed = b.driver_free - b.front
    if exposed > 0.0:  # no slot was running meanwhile: this time belongs to the driver
        spent = b.turn_handling + b.turn_in + b.turn_out + b.turn_policy
        b.fault_handling += exposed * b.turn_handling / spent
        b.transfer_in += exposed * b.turn_in / spent
        b.transfer_out += exposed * b.turn_out / spent
        b.policy_overhead += exposed * b.turn_policy / spent
        b.front = b.driver_free
    still = 0
    for i in range(b.queue_n):
        slot = m.queue[i]
        if m.page_state[m.slot_page[slot]] & (NEAR | REMOTE):
            wake(m, k, blocks, slot, per_byte, remote)
        else:
            m.queue[still] = slot
            still += 1
    b.queue_n = still
    note(m)


@jit_bare
def wake(m: Any, k: Any, blocks: Any, slot: int, per_byte: float, remote: float) -> None:
    """A stalled slot makes the touch it stalled on, before anything else can happen: so every turn makes progress."""
    b = m.books[0]
    i = m.slot_at[slot]
    page = m.slot_page[slot]
    _, write, size, reference = touch_at(blocks, i)
    near = m.page_state[page] & NEAR
    if k.tracking:
        m.last_touch[page] = b.touches
        m.last_reference[page] = reference
        m.region_touches[page // k.pages_per_region] += 1
    b.touches += 1
    time = max(m.slot_time[slot], b.driver_free)
    if near:
        m.page_state[page] |= TOUCHED | DIRTY if write else TOUCHED
        spent = max(k.latency, size * per_byte)
        b.near_time += spent
    else:  # a page that was left far while this slot waited for it
        spent = k.remote_latency + size * remote
        b.remote_time += spent
        b.remote_touches += 1
        b.remote_bytes += size
        notice(m, page, page // k.pages_per_region, size, time + spent)
    time += spent
    m.slot_time[slot] = time
    m.slot_at[slot] = i + 1
    m.slot_status[slot] = RUNNING
    if time > b.front:
        b.running += time - b.front
        b.front = time


@jit_bare
def touch_at(blocks: Any, at: int) -> Any:
    """The touch at a slot's place: its page, whether it writes, its bytes and its reference."""
    i, behind = at, blocks.rest.page.size
    touches = blocks.rest
    if at >= behind:
        i, touches = at - behind, blocks.new
    return touches.page[i], touches.write[i], touches.bytes[i], touches.reference[i]


@jit_bare
def note(m: Any) -> None:
    """Add a row to the timeline; when it is full, every other row is dropped and rows come half as often."""
    b = m.books[0]
    b.timeline_skip += 1
    if b.timeline_skip < b.timeline_stride:
        return
    b.timeline_skip = 0
    if b.timeline_n == TIMELINE_ROWS:
        for i in range(TIMELINE_ROWS // 2):
            for column in range(m.timeline.shape[1]):
                m.timeline[i, column] = m.timeline[2 * i + 1, column]
        b.timeline_n = TIMELINE_ROWS // 2
        b.timeline_stride *= 2
    row, n = m.timeline, b.timeline_n
    row[n, 0], row[n, 1], row[n, 2], row[n, 3], row[n, 4] = b.front, b.touches, b.faults, b.batches, b.evictions
    row[n, 5], row[n, 6], row[n, 7] = b.pages_in, b.pages_written_back, b.remote_bytes
    row[n, 8], row[n, 9] = b.frames_used, b.running
    b.timeline_n += 1


@jit
def begin_launch(m: Any, k: Any, relay: Any, blocks: Any, number: int) -> int:
    """Tell the policies of a launch and do at once what they ask for: the launch waits, as behind a stream's copies."""
    b = m.books[0]
    if not (m.wants[0, LAUNCH] or m.wants[1, LAUNCH] or m.wants[2, LAUNCH]):
        return OK
    if b.driver_busy:
        finish_turn(m, k, blocks, 0.0, 0.0)
    begin_turn(m, max(b.driver_free, b.front))
    code = tell(m, k, relay, np.int64(LAUNCH), number)
    if code == OK:
        code = evict_asked(m, k, relay)
    end_turn(m, k)
    finish_turn(m, k, blocks, 0.0, 0.0)
    b.prefetch_from = b.front
    while b.prefetch_n > 0 and code == OK:
        code = serve_prefetches(m, k, relay)
        finish_turn(m, k, blocks, 0.0, 0.0)
    return code
