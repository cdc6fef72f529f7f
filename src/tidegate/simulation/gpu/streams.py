"""Copy streams: copies beside the kernels, one stream for each direction of the link.

    order_in · order_out (copy_orders.py)   what was asked for, region by region
    start_copies ──▶ start_out   the region leaves the policies' lists
                 └─▶ start_in    without a frame: waits for the outward stream, or evicts a victim
    end_in · end_out             pages are there, or a frame is free

A copy takes as long as the same transfer in the driver's turn. While both streams copy, they share
the link's two-way rate. Transfers of the driver go first: a copy that is under way meanwhile ends
later by as much.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.jit import jit_bare
from tidegate.policies.interface.events import ASK_DISCARD, PREFETCH, VICTIM
from tidegate.policies.interface.page_flags import ARRIVING, COMING, NEAR, UNWRITTEN, WANTED
from tidegate.simulation.gpu.copy_orders import append_in, order_out, unblock
from tidegate.simulation.gpu.frames import depart, handling, is_copied_in, unmap
from tidegate.simulation.gpu.lifetimes import discard
from tidegate.simulation.gpu.memory import ASKED, LEAVING, NOT_RESIDENT, OK
from tidegate.simulation.gpu.policy_calls import query, send_event
from tidegate.simulation.gpu.recorded_moves import record_came
from tidegate.simulation.recording import AS_COPY, AS_VICTIM, BY_COPY


@jit_bare
def can_start(memory: Any) -> bool:
    """Return whether a stream is idle and has something to copy."""
    books = memory.books[0]
    inward = books.in_n > 0 and not books.in_busy and not books.in_blocked
    return inward or (books.out_n > 0 and not books.out_busy and not books.out_blocked)


@jit_bare
def start_copies(memory: Any, constants: Any, relay: Any) -> int:
    """Begin copies until no more can begin now."""
    books, code = memory.books[0], OK
    while code == OK and can_start(memory):
        if books.out_n > 0 and not books.out_busy and not books.out_blocked:
            code = start_out(memory, constants, relay)
        else:
            code = start_in(memory, constants, relay)
    return code


@jit_bare
def start_out(memory: Any, constants: Any, relay: Any) -> int:
    """Begin to evict the next region, unless it is in use; drop one that shall stay or is gone."""
    books = memory.books[0]
    region = memory.out_ring[books.out_head]
    goes = memory.leaving[region] == ASKED and memory.resident[region] > 0
    if goes and is_in_use(memory, region):
        books.out_blocked = 1
        return OK
    books.out_head = (books.out_head + 1) % memory.out_ring.size
    books.out_n -= 1
    books.in_blocked = 0  # if it waits for this stream, it looks again
    memory.leaving[region] = 0
    if not goes:
        return OK
    return leave(memory, constants, relay, region, AS_COPY)


@jit_bare
def is_in_use(memory: Any, region: int) -> bool:
    """Return whether the driver serves this region now, or the inward stream copies it."""
    books = memory.books[0]
    served = books.driver_busy and memory.served[region] == books.turn
    return served or is_copied_in(memory, region)


@jit_bare
def leave(memory: Any, constants: Any, relay: Any, region: int, why: int) -> int:
    """Evict a region by the outward stream, which is idle; ``why`` is for a recording."""
    books = memory.books[0]
    memory.leaving[region] = LEAVING
    code, back, runs, frames = depart(memory, constants, relay, region, constants.evict_maps, why)
    if code != OK:
        return code
    if back == 0:
        memory.leaving[region] = 0
        books.frames_used -= frames
    else:
        time = runs * constants.run_outward + back * constants.out_per_page
        time *= constants.crowded if books.in_busy else 1.0
        books.link_out_time += time
        if books.driver_busy:
            time += max(0.0, min(books.turn_out, books.driver_free - books.out_free))
        books.out_busy, books.out_region, books.out_frames = 1, region, frames
        books.out_end = books.out_free + time
    return execute_evictions(memory, constants, relay)


@jit_bare
def execute_evictions(memory: Any, constants: Any, relay: Any) -> int:
    """Let the streams evict what policies request outside a turn of the driver."""
    books, code = memory.books[0], OK
    while books.request_n > 0 and code == OK:
        books.request_n -= 1
        verb, region = memory.requests[books.request_n, 0], memory.requests[books.request_n, 1]
        if verb != ASK_DISCARD:
            order_out(memory, region)
        elif memory.resident[region] > 0:
            code = discard(memory, constants, relay, region)
    return code


@jit_bare
def start_in(memory: Any, constants: Any, relay: Any) -> int:
    """Begin to copy the next region, if there is a frame for it."""
    books = memory.books[0]
    region = memory.in_ring[books.in_head]
    pages = pages_asked(memory, constants, region)
    if pages > 0:
        if memory.leaving[region] == LEAVING:
            books.in_blocked = 1
            return OK
        code = find_room(memory, constants, relay, region, pages)
        if code != OK or books.in_blocked:
            return code
    books.in_head = (books.in_head + 1) % memory.in_ring.size
    books.in_n -= 1
    memory.ordered[region] = 0
    return come(memory, constants, relay, region, pages) if pages > 0 else OK


@jit_bare
def pages_asked(memory: Any, constants: Any, region: int) -> int:
    """Return how many pages of this region the inward stream has yet to copy."""
    base = region * constants.pages_per_region
    pages = 0
    for page in range(base, base + memory.region_pages[region]):
        pages += memory.page_state[page] & (ARRIVING | COMING) == ARRIVING
    return pages


@jit_bare
def find_room(memory: Any, constants: Any, relay: Any, region: int, pages: int) -> int:
    """Take frames; without any, wait for the outward stream, or have it evict a victim."""
    books = memory.books[0]
    need = pages if constants.by_page else int(memory.resident[region] == 0)
    while books.frames_used + need > constants.frames:
        if books.out_busy or books.out_n > 0:
            books.in_blocked = 1
            return OK
        books.decisions += 1
        books.in_handling += constants.decision
        code, victim = query(memory, constants, relay, VICTIM)
        if code != OK:
            return code
        if victim < 0 or victim >= memory.resident.size or memory.resident[victim] == 0:
            return NOT_RESIDENT
        if is_in_use(memory, victim):
            books.in_blocked = 1
            return OK
        books.out_free = max(books.out_free, books.in_free)
        code = leave(memory, constants, relay, victim, AS_VICTIM)
        if code != OK:
            return code
        if not constants.by_page:
            need = int(memory.resident[region] == 0)
    books.frames_used += need
    books.frames_peak = max(books.frames_peak, books.frames_used)
    return OK


@jit_bare
def come(memory: Any, constants: Any, relay: Any, region: int, taken: int) -> int:
    """Copy a region's pages that were asked for: they are COMING until the copy ends.

    ``taken``: frames taken, where frames are pages; others that are asked for wait.
    """
    books = memory.books[0]
    code = send_event(memory, constants, relay, PREFETCH, region)
    if code == OK:
        code = execute_evictions(memory, constants, relay)
    base = region * constants.pages_per_region
    pages = born = runs = mapped = 0
    before = -2
    for page in range(base, base + memory.region_pages[region]):
        room = not constants.by_page or pages + born < taken
        if room and memory.page_state[page] & (ARRIVING | COMING) == ARRIVING:
            memory.page_state[page] = (memory.page_state[page] | COMING) & ~WANTED & 0xFF
            if memory.page_data[page] & UNWRITTEN:
                born += 1
            else:
                pages += 1
                runs += page != before + 1
                before = page
                mapped += unmap(memory, page)
    if constants.by_page:
        books.frames_used -= taken - pages - born
    memory.resident[region] += pages + born
    came = np.int64(pages + born)
    record_came(memory, region, came, came, BY_COPY)
    memory.region_pages_in[region] += pages
    books.pages_in += pages
    books.pages_born += born
    books.copies_in += runs
    books.pages_prefetched += pages + born
    unmapping = mapped * constants.unmap_prefetched
    books.in_handling += handling(memory, constants, region, runs, unmapping)
    time = runs * constants.run_overhead + pages * constants.in_per_page
    begin_copy(memory, region, time * (constants.crowded if books.out_busy else 1.0))
    if pages_asked(memory, constants, region) > 0:  # while frames were found for the others
        append_in(memory, region)
    expect_faulted(memory)
    return code


@jit_bare
def begin_copy(memory: Any, region: int, time: float) -> None:
    """Set when the inward stream's copy ends."""
    books = memory.books[0]
    books.link_in_time += time
    if books.driver_busy:
        time += max(0.0, min(books.turn_in, books.driver_free - books.in_free))
    books.in_busy, books.in_region, books.in_begin = 1, region, books.in_free
    books.in_end = books.in_free + books.in_handling + time


@jit_bare
def expect_faulted(memory: Any) -> None:
    """Let slots whose pages faulted before they were copied wait for the copy instead."""
    books = memory.books[0]
    still = 0
    for i in range(books.queue_n):
        slot = memory.queue[i]
        if memory.page_state[memory.slot_page[slot]] & ARRIVING:
            memory.arrivals[books.arrivals_n] = slot
            books.arrivals_n += 1
        else:
            memory.queue[still] = slot
            still += 1
    books.queue_n = still


@jit_bare
def end_in(memory: Any, constants: Any) -> None:
    """End the inward stream's copy: its pages are near."""
    books = memory.books[0]
    base = books.in_region * constants.pages_per_region
    for page in range(base, base + memory.region_pages[books.in_region]):
        if memory.page_state[page] & (ARRIVING | COMING) == ARRIVING | COMING:
            memory.page_state[page] = (memory.page_state[page] | NEAR) & ~(ARRIVING | COMING) & 0xFF
    exposed = books.in_end - books.front
    if exposed > 0.0:  # no slot ran meanwhile
        handling = exposed * books.in_handling / (books.in_end - books.in_begin)
        books.fault_handling += handling
        books.transfer_in += exposed - handling
        books.front = books.in_end
    books.in_busy = books.hold = 0
    books.in_handling = 0.0
    books.in_free = books.in_end
    unblock(memory, books.in_end)


@jit_bare
def end_out(memory: Any) -> None:
    """End the outward stream's copy: the region's frame is free."""
    books = memory.books[0]
    memory.leaving[books.out_region] = 0
    books.frames_used -= books.out_frames
    exposed = books.out_end - books.front
    if exposed > 0.0:
        books.transfer_out += exposed
        books.front = books.out_end
    books.out_busy = books.hold = 0
    books.out_free = books.out_end
    unblock(memory, books.out_end)


@jit_bare
def delay_copies(memory: Any, start: float) -> None:
    """Delay copies that are under way by the transfers of a turn that began at ``start``."""
    books = memory.books[0]
    if books.in_busy and books.in_end > start:
        books.in_end += books.turn_in
    if books.out_busy and books.out_end > start:
        books.out_end += books.turn_out


@jit_bare
def next_end(memory: Any) -> float:
    """Return when the driver's turn or a copy ends first."""
    books = memory.books[0]
    first = np.inf
    if books.driver_busy:
        first = books.driver_free
    if books.in_busy:
        first = min(first, books.in_end)
    if books.out_busy:
        first = min(first, books.out_end)
    return first
