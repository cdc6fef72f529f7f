"""The driver: serial, one turn at a time. A turn serves a batch of faults, or carries out some
prefetches.

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

from tidegate.compiled.jit import jit, jit_bare
from tidegate.compiled.sorting import sort
from tidegate.policies.interface.events import FAULT, LAUNCH, NO_TREE, PREFETCH
from tidegate.policies.interface.last_touch import latest
from tidegate.policies.interface.page_flags import COMING, DIRTY, FAULTED, NEAR, REMOTE, TOUCHED
from tidegate.simulation.gpu.codes import CUT, OK
from tidegate.simulation.gpu.frames import (
    evict_asked,
    make_room,
    migrate,
    room_for_wanted,
    wanted_pages,
)
from tidegate.simulation.gpu.memory import PREFETCH_TURN, RUNNING, TIMELINE_ROWS
from tidegate.simulation.gpu.notifications import ask_observe, serve_notices
from tidegate.simulation.gpu.observation import notice, watch_returning
from tidegate.simulation.gpu.requests import call, tell
from tidegate.simulation.gpu.tree import want_subtrees

# Numba compiles a function anew for every constant it is called with; np.int64(…) keeps it to one.


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
def serve_region(m: Any, k: Any, relay: Any, region: int, first: int, last: int) -> int:
    """Serve the faulted pages ``m.batch_page[first:last]``, all of one region."""
    b = m.books[0]
    if m.resident[region] == 0:
        watch_returning(m, region)
    code = make_room(m, k, relay, region, last - first)
    if code != OK:
        return code
    m.served[region] = b.turn
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
def serve_notice_turn(m: Any, k: Any, relay: Any) -> int:
    """A turn for notifications alone."""
    b = m.books[0]
    begin_turn(m, max(b.driver_free, b.notice_from))
    code = serve_notices(m, k, relay)
    end_turn(m, k)
    return code


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
            m.served[region] = b.turn
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
        # only what sticks out behind the way in
        b.turn_out = max(0.0, max(b.turn_out, both) - b.turn_in)
    spent = b.turn_handling + b.turn_in + b.turn_out + b.turn_policy
    b.driver_time += spent
    b.driver_free += spent


@jit_bare
def finish_turn(m: Any, k: Any, blocks: Any, per_byte: float, remote: float) -> None:
    """The turn is over: pages arrive, slots that waited for them make their touch, and exposed time
    is accounted.
    """
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
    """A stalled slot makes the touch it stalled on, before anything else can happen: so every turn
    makes progress.
    """
    b = m.books[0]
    i = m.slot_at[slot]
    page = m.slot_page[slot]
    _, write, size, reference = touch_at(blocks, i)
    near = m.page_state[page] & NEAR
    if k.tracking:
        m.latest[page] = latest(b.touches, reference)
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
    m.slot_time[slot] = m.slot_due[slot] = time
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
    """Add a row to the timeline; when it is full, every other row is dropped and rows come half as
    often.
    """
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
    row[n, 0], row[n, 1], row[n, 2], row[n, 3], row[n, 4] = (
        b.front,
        b.touches,
        b.faults,
        b.batches,
        b.evictions,
    )
    row[n, 5], row[n, 6], row[n, 7] = b.pages_in, b.pages_written_back, b.remote_bytes
    row[n, 8], row[n, 9] = b.frames_used, b.running
    b.timeline_n += 1


@jit
def begin_launch(m: Any, k: Any, relay: Any, blocks: Any, number: int) -> int:
    """Tell the policies of a launch and do at once what they ask for: the launch waits, as behind a
    stream's copies.
    """
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
