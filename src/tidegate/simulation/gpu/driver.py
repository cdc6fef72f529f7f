"""The driver: serial, one turn at a time. A turn serves a batch of faults or some prefetches.

    serve_faults ──▶ for each region of the batch, by address:
                       make_room ──▶ query the policy for a victim, evict it
                       send the fault · execute requests · tree prefetch
                       migrate
                       observe_next ──▶ query the policy for a region to observe, sample its pages
    finish_turn  ──▶ pages arrive, stalled slots wake, exposed time goes to its parts

Pages that leave are gone when the turn begins; pages that come are usable when it ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.intrinsics import sort
from tidegate.compiled.jit import jit, jit_bare
from tidegate.policies.interface.events import (
    FAULT,
    LAUNCH,
    NO_TREE,
    NOTIFICATION,
    OBSERVE,
    PREFETCH,
)
from tidegate.policies.interface.page_flags import (
    ARRIVING,
    COMING,
    COUNTED,
    DIRTY,
    FAULTED,
    NEAR,
    REMOTE,
    TOUCHED,
    latest,
)
from tidegate.simulation.gpu.copy_orders import order_in, order_regions_out, stay, unblock
from tidegate.simulation.gpu.driver_constants import PREFETCH_TURN
from tidegate.simulation.gpu.fault_batch import fill_batch, touch_at
from tidegate.simulation.gpu.frames import (
    evict_requested,
    make_room,
    make_room_for_wanted,
    migrate,
    wanted_pages,
)
from tidegate.simulation.gpu.lifetimes import free_in_region
from tidegate.simulation.gpu.memory import (
    ASKED,
    CUT,
    LEAVING,
    NOT_RESIDENT,
    OK,
    RUNNING,
    TIMELINE_ROWS,
)
from tidegate.simulation.gpu.observation import count_return, return_samples, take_samples
from tidegate.simulation.gpu.policy_calls import call_policy, query, send_event
from tidegate.simulation.gpu.recorded_moves import mark
from tidegate.simulation.gpu.remote import touch_remote
from tidegate.simulation.gpu.streams import (
    delay_copies,
    end_in,
    end_out,
    execute_evictions,
    next_end,
    start_copies,
)
from tidegate.simulation.gpu.tree import mark_subtrees
from tidegate.simulation.recording import FAULTS, TOUCHES, note


@jit_bare
def serve_faults(memory: Any, constants: Any, relay: Any, blocks: Any) -> int:
    """Serve one batch: at most ``batch_faults`` faults, merged and sorted by address."""
    books = memory.books[0]
    started = memory.slot_time[memory.queue[0]]
    for i in range(books.queue_n):
        started = min(started, memory.slot_time[memory.queue[i]])
    begin_turn(memory, max(books.driver_free, started))
    code = serve_notifications(memory, constants, relay)
    if code != OK:
        return code
    books.fault_turn = 1
    books.batches += 1
    books.turn_handling = constants.batch_overhead
    n = fill_batch(memory, constants, blocks)
    sort(memory.batch_page, n)
    first = np.int64(0)
    while first < n and code == OK:
        region = memory.batch_page[first] // constants.pages_per_region
        last = first + 1
        while last < n and memory.batch_page[last] // constants.pages_per_region == region:
            last += 1
        code = serve_region(memory, constants, relay, region, first, last)
        if code == OK:
            first = last
    books.cut = code == CUT
    for i in range(first, n):  # the turn was cut: these faults are raised again
        memory.page_state[memory.batch_page[i]] &= ~FAULTED & 0xFF
    end_turn(memory, constants)
    return OK if code == CUT else code


@jit_bare
def serve_region(
    memory: Any, constants: Any, relay: Any, region: int, first: int, last: int
) -> int:
    """Serve the faulted pages ``batch_page[first:last]``, all of one region."""
    books = memory.books[0]
    if memory.leaving[region] == LEAVING:
        books.hold = 1
        return CUT
    stay(memory, region)
    if memory.resident[region] == 0:
        count_return(memory, region)
    code = make_room(memory, constants, relay, region, last - first)
    if code != OK:
        return code
    memory.served[region] = books.turn
    books.faults += last - first
    memory.region_faults[region] += last - first
    note(memory, FAULTS, books.touches, region, last - first)
    code = send_event(memory, constants, relay, FAULT, region)
    if code == OK:
        code = evict_requested(memory, constants, relay)
    if code != OK:
        return code
    if books.threshold < NO_TREE:
        mark_subtrees(memory, constants, region, first, last)
    if memory.wants[1, PREFETCH] and wanted_pages(memory, constants, region) > 0:
        code = call_policy(memory, constants, relay.prefetch, 1, PREFETCH, region)
        if code == OK:
            code = evict_requested(memory, constants, relay)
        if code != OK:
            return code
    code, taken = make_room_for_wanted(memory, constants, relay, region, last - first, last - first)
    if code != OK:
        return code
    migrate(memory, constants, region, taken, constants.unmap_per_page)
    return observe_next(memory, constants, relay)


@jit_bare
def serve_notification_turn(memory: Any, constants: Any, relay: Any) -> int:
    """Serve a turn of notifications alone."""
    books = memory.books[0]
    begin_turn(memory, max(books.driver_free, books.notification_from))
    code = serve_notifications(memory, constants, relay)
    end_turn(memory, constants)
    return code


@jit_bare
def serve_notifications(memory: Any, constants: Any, relay: Any) -> int:
    """Serve the uses that counters noticed: return sampled pages and notify policies.

    The driver fetches up to ``batch_notifications`` of them at a time; that costs ``notification``.
    """
    books = memory.books[0]
    n = books.notification_n
    books.notification_n = 0
    served = 0
    for i in range(n):
        used = memory.notifications[i]  # a page, or -1 - granule
        if used >= 0 and (memory.sampled[used] == 0 or memory.sampled[used] & 1):
            continue  # its region was evicted, or another of its pages was noticed before
        which = used // constants.pages_per_region if used >= 0 else -1 - used
        books.notifications += 1
        if served % constants.batch_notifications == 0:
            books.turn_policy += constants.notification
        served += 1
        code = notify(memory, constants, relay, which, used >= 0)
        if code == OK:
            code = evict_requested(memory, constants, relay)
        if code == OK:
            code = observe_next(memory, constants, relay)
        if code != OK:
            return code
    return OK


@jit_bare
def notify(memory: Any, constants: Any, relay: Any, which: int, sampled: bool) -> int:
    """Notify eviction and prefetch policies of a sampled region, placement of a counted granule."""
    books, event = memory.books[0], np.int64(NOTIFICATION)
    code = OK
    if sampled:
        memory.served[which] = books.turn
        return_samples(memory, constants, which)
        if memory.wants[0, event]:
            code = call_policy(memory, constants, relay.eviction, 0, event, which)
        if code == OK and memory.wants[1, event]:
            code = call_policy(memory, constants, relay.prefetch, 1, event, which)
    else:
        books.accesses = memory.counted[which] - 1
        memory.counted[which] = 0
        books.counting_n -= 1
        if memory.wants[2, event] and books.count_each:
            code = notify_of_pages(memory, constants, relay, which)
        elif memory.wants[2, event]:
            code = call_policy(memory, constants, relay.placement, 2, event, which)
    return code


@jit_bare
def notify_of_pages(memory: Any, constants: Any, relay: Any, granule: int) -> int:
    """Notify placement of each page of a granule that had some of the accesses."""
    first, event = granule * memory.books[0].granule, np.int64(NOTIFICATION)
    last = min(first + memory.books[0].granule, memory.page_data.size)
    for page in range(first, last):
        if memory.page_data[page] & COUNTED:
            memory.page_data[page] &= ~COUNTED & 0xFF
            code = call_policy(memory, constants, relay.placement, 2, event, page)
            if code != OK:
                return code
    return OK


@jit_bare
def observe_next(memory: Any, constants: Any, relay: Any) -> int:
    """Query which region to observe next, once memory is nearly full and while counters last."""
    books = memory.books[0]
    free = constants.frames - books.frames_used
    most_free = constants.observe_most * (constants.pages_per_region if constants.by_page else 1)
    if not memory.wants[0, OBSERVE] or free > most_free:
        return OK
    if books.observed_n >= constants.observe_most or books.sampled_n >= constants.counters:
        return OK
    code, region = query(memory, constants, relay, OBSERVE)
    if code != OK or region < 0:
        return code
    if region >= memory.resident.size or memory.resident[region] == 0:
        return NOT_RESIDENT
    if memory.observed[region] == 0 and memory.served[region] != books.turn:
        take_samples(memory, constants, region)
    return OK


@jit_bare
def serve_prefetches(memory: Any, constants: Any, relay: Any) -> int:
    """Serve some of the queued prefetches, region by region."""
    books = memory.books[0]
    begin_turn(memory, max(books.driver_free, books.prefetch_from))
    books.fault_turn = 0
    for _ in range(min(PREFETCH_TURN, max(1, constants.room // 2))):
        if books.prefetch_n == 0:
            break
        region = memory.prefetch_ring[books.prefetch_head]
        pages = wanted_pages(memory, constants, region)
        if pages > 0:
            if memory.leaving[region] == LEAVING:
                books.hold = 1
                break
            stay(memory, region)
            code = make_room(memory, constants, relay, region, pages)
            if code == CUT:
                break
            if code != OK:
                return code
            memory.served[region] = books.turn
            code = send_event(memory, constants, relay, PREFETCH, region)
            if code == OK:
                code = evict_requested(memory, constants, relay)
            if code == OK:
                code, pages = make_room_for_wanted(memory, constants, relay, region, 0, pages)
            if code != OK:
                return code
            migrate(memory, constants, region, pages, constants.unmap_prefetched)
        memory.prefetch_queued[region] = 0
        books.prefetch_head = (books.prefetch_head + 1) % memory.prefetch_ring.size
        books.prefetch_n -= 1
    end_turn(memory, constants)
    return OK


@jit_bare
def begin_turn(memory: Any, start: float) -> None:
    books = memory.books[0]
    books.turn += 1
    books.driver_busy = 1
    books.driver_free = start
    books.coming_n = 0
    books.turn_handling = books.turn_in = books.turn_out = books.turn_policy = 0.0
    books.turn_copied = 0.0


@jit_bare
def end_turn(memory: Any, constants: Any) -> None:
    """Add up how long the turn takes, and its parts."""
    books = memory.books[0]
    books.link_in_time += books.turn_in
    books.link_out_time += books.turn_out
    if constants.pipelined and books.turn_out > 0:
        both = (
            books.turn_in / constants.in_per_page + books.turn_out / constants.out_per_page
        ) * constants.both_per_page
        # only what lasts longer than the way in
        longer = max(0.0, max(books.turn_out, both) - books.turn_in)
        books.turn_copied -= books.turn_out - longer
        books.turn_out = longer
    if constants.asynchronous:
        hide_handling(memory)
    delay_copies(memory, books.driver_free)
    spent = books.turn_handling + books.turn_in + books.turn_out + books.turn_policy
    books.driver_time += spent
    books.driver_free += spent


@jit_bare
def hide_handling(memory: Any) -> None:
    """Count only the handling during which no copy of the turn was under way.

    Handling a region queues its copies, and the driver goes on to the next one; it waits for them
    before the replay (uvm_gpu_replayable_faults.c, service_fault_batch_block: add to the tracker).
    """
    books = memory.books[0]
    handled = books.turn_handling + books.turn_policy
    copied = books.turn_in + books.turn_out
    if handled > 0.0 and copied > 0.0:
        left = max(0.0, max(handled, books.turn_copied) - copied) / handled
        books.turn_handling *= left
        books.turn_policy *= left


@jit_bare
def finish_turn(memory: Any, constants: Any, blocks: Any, per_byte: float) -> None:
    """End a turn: pages arrive, slots that waited for them wake, exposed time is accounted."""
    books = memory.books[0]
    books.driver_busy = 0
    for i in range(books.coming_n):
        page = memory.coming[i]
        memory.page_state[page] = (memory.page_state[page] | NEAR) & ~COMING & 0xFF
    exposed = books.driver_free - books.front
    if exposed > 0.0:  # no slot ran meanwhile: this time is the driver's
        spent = books.turn_handling + books.turn_in + books.turn_out + books.turn_policy
        books.fault_handling += exposed * books.turn_handling / spent
        books.transfer_in += exposed * books.turn_in / spent
        books.transfer_out += exposed * books.turn_out / spent
        books.policy_overhead += exposed * books.turn_policy / spent
        books.front = books.driver_free
    unblock(memory, books.driver_free)
    wake_slots(memory, constants, blocks, books.driver_free, per_byte)
    add_timeline_row(memory)
    mark(memory)


@jit_bare
def finish_copies(memory: Any, constants: Any, blocks: Any, per_byte: float) -> None:
    """End the copy that ends first; slots that waited for its pages wake."""
    books = memory.books[0]
    if books.in_busy and not (books.out_busy and books.out_end < books.in_end):
        end_in(memory, constants)
        wake_slots(memory, constants, blocks, books.in_end, per_byte)
    else:
        end_out(memory)


@jit_bare
def finish_next(memory: Any, constants: Any, blocks: Any, per_byte: float) -> None:
    """End the driver's turn or the copy that ends first."""
    books = memory.books[0]
    if books.driver_busy and books.driver_free <= next_end(memory):
        finish_turn(memory, constants, blocks, per_byte)
    else:
        finish_copies(memory, constants, blocks, per_byte)


@jit_bare
def wake_slots(memory: Any, constants: Any, blocks: Any, when: float, per_byte: float) -> None:
    """Wake the slots whose pages are there, first those that faulted."""
    books = memory.books[0]
    still = 0
    for i in range(books.queue_n):
        slot = memory.queue[i]
        if memory.page_state[memory.slot_page[slot]] & (NEAR | REMOTE):
            wake(memory, constants, blocks, slot, when, per_byte)
        else:
            memory.queue[still] = slot
            still += 1
    books.queue_n = still
    still = 0
    for i in range(books.arrivals_n):
        slot = memory.arrivals[i]
        state = memory.page_state[memory.slot_page[slot]]
        if state & (NEAR | REMOTE):
            wake(memory, constants, blocks, slot, when, per_byte)
        elif state & (ARRIVING | COMING):
            memory.arrivals[still] = slot
            still += 1
        else:  # it came near and left again before this slot woke
            memory.queue[books.queue_n] = slot
            books.queue_n += 1
    books.arrivals_n = still


@jit_bare
def wake(memory: Any, constants: Any, blocks: Any, slot: int, when: float, per_byte: float) -> None:
    """Let a stalled slot make its touch before anything else, so that every turn makes progress."""
    books = memory.books[0]
    i = memory.slot_at[slot]
    page = memory.slot_page[slot]
    _, write, size, reference, cost = touch_at(blocks, i)
    near = memory.page_state[page] & NEAR
    if constants.tracking:
        memory.latest[page] = latest(books.touches, reference)
        memory.region_touches[page // constants.pages_per_region] += 1
    note(memory, TOUCHES, books.touches, page // constants.pages_per_region, 1)
    books.touches += 1
    time = max(memory.slot_time[slot], when)
    spent = memory.slot_pace[slot] * max(books.latency, cost * per_byte)
    if near:
        memory.page_state[page] |= TOUCHED | DIRTY if write else TOUCHED
        books.near_time += spent
        time += spent
    else:  # the page became remote while this slot waited
        books.link_free = max(books.link_free, when)
        size, site = np.int64(size), np.int64(reference)
        time = touch_remote(memory, constants, blocks.sharing, page, size, site, time, spent)
    memory.slot_time[slot] = memory.slot_due[slot] = time
    memory.slot_at[slot] = i + 1
    memory.slot_status[slot] = RUNNING
    if time > books.front:
        books.running += time - books.front
        books.front = time


@jit_bare
def add_timeline_row(memory: Any) -> None:
    """Add a row to the timeline; when it is full, drop every other row and add half as often."""
    books = memory.books[0]
    books.timeline_skip += 1
    if books.timeline_skip < books.timeline_stride:
        return
    books.timeline_skip = 0
    if books.timeline_n == TIMELINE_ROWS:
        for i in range(TIMELINE_ROWS // 2):
            for column in range(memory.timeline.shape[1]):
                memory.timeline[i, column] = memory.timeline[2 * i + 1, column]
        books.timeline_n = TIMELINE_ROWS // 2
        books.timeline_stride *= 2
    row, n = memory.timeline, books.timeline_n
    row[n, 0], row[n, 1], row[n, 2] = books.front, books.touches, books.faults
    row[n, 3], row[n, 4], row[n, 5] = books.batches, books.evictions, books.pages_in
    row[n, 6], row[n, 7] = books.pages_written_back, books.remote_bytes
    row[n, 8], row[n, 9] = books.frames_used, books.running
    books.timeline_n += 1


@jit
def begin_launch(memory: Any, constants: Any, relay: Any, blocks: Any, number: int) -> int:
    """Send a launch to the policies and serve what they request.

    The launch waits for it, as behind a stream's copies.
    """
    books = memory.books[0]
    if not (memory.wants[0, LAUNCH] or memory.wants[1, LAUNCH] or memory.wants[2, LAUNCH]):
        return OK
    if books.driver_busy:
        finish_turn(memory, constants, blocks, 0.0)
    while books.hold:
        finish_copies(memory, constants, blocks, 0.0)
    begin_turn(memory, max(books.driver_free, books.front))
    code = send_event(memory, constants, relay, LAUNCH, number)
    if code == OK:
        code = evict_requested(memory, constants, relay)
    end_turn(memory, constants)
    finish_turn(memory, constants, blocks, 0.0)
    books.prefetch_from = books.front
    while books.prefetch_n > 0 and code == OK:
        code = serve_prefetches(memory, constants, relay)
        finish_turn(memory, constants, blocks, 0.0)
        while books.hold:
            finish_copies(memory, constants, blocks, 0.0)
    return code


@jit
def copy_before_launch(memory: Any, constants: Any, relay: Any, blocks: Any, copies: Any) -> int:
    """Ask for the program's copies, and wait where it does.

    Rows of ``copies``: first page, pages, to far?, wait?
    """
    code = OK
    for i in range(len(copies)):
        first, count, far = copies[i, 0], copies[i, 1], copies[i, 2]
        if far:
            order_regions_out(memory, constants, first, count)
        else:
            order_in(memory, constants, first, count)
    for i in range(len(copies)):
        if copies[i, 3] and code == OK:
            code = wait_for_copy(memory, constants, relay, blocks, copies[i, 0], copies[i, 1])
    return code


@jit_bare
def wait_for_copy(
    memory: Any, constants: Any, relay: Any, blocks: Any, first: int, count: int
) -> int:
    """Let time pass, while no slot runs, until none of these pages is on its way in or out."""
    while is_on_its_way(memory, constants, first, count):
        code = start_copies(memory, constants, relay)
        if code != OK:
            return code
        if next_end(memory) < np.inf:
            finish_next(memory, constants, blocks, 0.0)
    return OK


@jit_bare
def is_on_its_way(memory: Any, constants: Any, first: int, count: int) -> bool:
    """Return whether a stream has yet to copy one of these pages."""
    for page in range(first, first + count):
        leaving = memory.leaving[page // constants.pages_per_region]
        if memory.page_state[page] & ARRIVING or leaving in (ASKED, LEAVING):
            return True
    return False


@jit
def end_launch(memory: Any, constants: Any, relay: Any, frees: Any) -> int:
    """Discard pages ``frees[i, 0]`` to ``frees[i, 1] - 1``: their data died with the launch."""
    code = OK
    for i in range(len(frees)):
        first, end = frees[i, 0], frees[i, 1]
        while first < end and code == OK:
            region = first // constants.pages_per_region
            until = min(end, (region + 1) * constants.pages_per_region)
            code = free_in_region(memory, constants, relay, region, first, until)
            if code == OK:
                code = execute_evictions(memory, constants, relay)
            first = until
    unblock(memory, memory.books[0].front)
    return code
