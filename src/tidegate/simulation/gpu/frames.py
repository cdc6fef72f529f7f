"""Frames: evicting regions to make room, and migrating pages into it.

make_room ──▶ query the policy for a victim and evict it, until enough frames are free
evict     ──▶ depart: send the event, take the pages away; write back, free the frames
migrate   ──▶ faulted and wanted pages are COMING until the turn ends
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.jit import jit_bare
from tidegate.policies.interface.events import ASK_DISCARD, EVICTION, VICTIM
from tidegate.policies.interface.page_flags import (
    ARRIVING,
    COMING,
    CPU_MAPPED,
    DIRTY,
    FAULTED,
    NEAR,
    READ_MOSTLY,
    TOUCHED,
    UNWRITTEN,
    WANTED,
)
from tidegate.simulation.gpu.lifetimes import discard
from tidegate.simulation.gpu.memory import CUT, NOT_RESIDENT, OK
from tidegate.simulation.gpu.observation import count_eviction, drop_samples
from tidegate.simulation.gpu.policy_calls import BY_PLACEMENT, query, send_event
from tidegate.simulation.gpu.recorded_moves import record_came, record_left
from tidegate.simulation.recording import AS_ASKED, AS_VICTIM, BY_FAULT, BY_PREFETCH


@jit_bare
def make_room(memory: Any, constants: Any, relay: Any, region: int, pages: int) -> int:
    """Take frames for ``pages`` more pages of a region, evicting while too few are free.

    CUT: the victim was served in this turn, or a stream is copying it or another region out. Where
    frames are regions, a resident region has one.
    """
    books = memory.books[0]
    need = pages if constants.by_page else 1
    if not constants.by_page and memory.resident[region] > 0:
        return OK
    while books.frames_used + need > constants.frames:
        if books.out_busy:  # a frame will be free when the copy ends
            books.hold = 1
            return CUT
        books.decisions += 1
        books.turn_policy += constants.decision
        code, victim = query(memory, constants, relay, VICTIM)
        if code != OK:
            return code
        if victim < 0 or victim >= memory.resident.size:
            return NOT_RESIDENT
        if memory.served[victim] == books.turn:
            return CUT
        if is_copied_in(memory, victim):
            books.hold = 1
            return CUT
        if memory.resident[victim] == 0:
            return NOT_RESIDENT
        code = evict(memory, constants, relay, victim, constants.victims_mapped, AS_VICTIM)
        if code != OK:
            return code
    books.frames_used += need
    books.frames_peak = max(books.frames_peak, books.frames_used)
    return OK


@jit_bare
def evict(memory: Any, constants: Any, relay: Any, region: int, mapped: bool, why: int) -> int:
    """Send a region far in the driver's current turn; ``mapped`` and ``why``: see depart."""
    books = memory.books[0]
    code, back, runs, frames = depart(memory, constants, relay, region, mapped, why)
    if code == OK:
        books.turn_handling += constants.evict_overhead + runs * constants.copy_handling
        time = runs * constants.run_outward + back * constants.out_per_page
        books.turn_out += time
        queue_copy(memory, time)
        books.frames_used -= frames
    return code


@jit_bare
def queue_copy(memory: Any, time: float) -> None:
    """Queue a copy of the driver's turn: it begins when it is asked for and those before it end."""
    books = memory.books[0]
    asked = books.turn_handling + books.turn_policy
    books.turn_copied = max(books.turn_copied, asked) + time


@jit_bare
def depart(memory: Any, constants: Any, relay: Any, region: int, mapped: bool, why: int) -> Any:
    """Take a region's pages away; return a code, pages to write back, their runs and its frames.

    Every near page is written back; with ``dirty_only``, and of read-mostly data, dirty ones only.
    ``mapped``: they are mapped on the CPU, so they are unmapped again when they return. A runtime's
    are (cudaMemPrefetchAsync), the driver's own victims where the machine has ``victims_mapped``.
    """
    books = memory.books[0]
    books.evictions += 1
    memory.region_evictions[region] += 1
    code = send_event(memory, constants, relay, EVICTION, region)
    if code != OK:
        return code, 0, 0, 0
    held = drop_samples(memory, constants, region) if memory.observed[region] > 0 else 0
    if constants.observe_most > 0:
        count_eviction(memory, constants, region)
    base = region * constants.pages_per_region
    pages = back = runs = untouched = 0
    before = -2
    for page in range(base, base + memory.region_pages[region]):
        state = memory.page_state[page]
        if state & NEAR:
            pages += 1
            copied = constants.dirty_only or memory.page_data[page] & READ_MOSTLY
            if state & DIRTY or not copied:
                back += 1
                runs += page != before + 1
                before = page
                memory.page_data[page] &= ~UNWRITTEN & 0xFF
            if not state & TOUCHED:
                untouched += 1
            if mapped and not memory.page_data[page] & UNWRITTEN:
                memory.page_data[page] |= CPU_MAPPED
            memory.page_state[page] = state & ~(NEAR | TOUCHED | DIRTY) & 0xFF
    books.pages_evicted += pages
    books.pages_written_back += back
    books.pages_unused += untouched
    record_left(memory, region, np.int64(pages), np.int64(untouched), why)
    memory.resident[region] = 0
    return OK, back, runs, pages + held if constants.by_page else 1


@jit_bare
def evict_requested(memory: Any, constants: Any, relay: Any) -> int:
    """Evict or discard regions at policies' request, but for those gone or served in this turn."""
    books = memory.books[0]
    while books.request_n > 0:
        books.request_n -= 1
        verb, region = memory.requests[books.request_n, 0], memory.requests[books.request_n, 1]
        runtime = memory.requests[books.request_n, 2] == BY_PLACEMENT
        if (
            memory.resident[region] > 0
            and memory.served[region] != books.turn
            and not is_copied_in(memory, region)
        ):
            if verb == ASK_DISCARD:
                code = discard(memory, constants, relay, region)
            else:
                code = evict(
                    memory, constants, relay, region, runtime and constants.evict_maps, AS_ASKED
                )
            if code != OK:
                return code
    return OK


@jit_bare
def migrate(memory: Any, constants: Any, region: int, taken: int, unmapping: float) -> None:
    """Migrate the region's faulted and wanted pages, at most ``taken`` of them.

    ``unmapping``: the time for a page that the CPU has mapped. Unwritten ones are born near:
    nothing of them crosses the link.
    """
    books = memory.books[0]
    base = region * constants.pages_per_region
    splits = constants.fault_bytes < constants.page
    pages = born = runs = copies = mapped = prefetched = 0
    before = -2
    for page in range(base, base + memory.region_pages[region]):
        state = memory.page_state[page]
        if state & (FAULTED | WANTED) and not state & (NEAR | COMING):
            memory.coming[books.coming_n] = page
            books.coming_n += 1
            if memory.page_data[page] & UNWRITTEN:
                born += 1
            else:
                pages += 1
                runs += page != before + 1
                before = page
                mapped += unmap(memory, page)
                if splits and state & FAULTED and is_apart(memory, constants, page):
                    copies += 1
            if not state & FAULTED:
                prefetched += 1
            state = (state | COMING) & ~ARRIVING & 0xFF
        memory.page_state[page] = state & ~(FAULTED | WANTED) & 0xFF
    if constants.by_page:
        books.frames_used -= taken - pages - born  # a policy may have left some far
    memory.resident[region] += pages + born
    faulted = pages + born - prefetched
    why = np.int64(BY_FAULT if faulted > 0 else BY_PREFETCH)
    record_came(memory, region, np.int64(pages + born), np.int64(prefetched), why)
    memory.region_pages_in[region] += pages
    books.pages_in += pages
    books.pages_born += born
    copies += runs
    books.copies_in += copies
    books.pages_prefetched += prefetched
    books.turn_handling += handling(memory, constants, region, runs, mapped * unmapping)
    time = copies * constants.run_overhead + pages * constants.in_per_page
    books.turn_in += time
    queue_copy(memory, time)


@jit_bare
def handling(memory: Any, constants: Any, region: int, runs: int, unmapping: float) -> float:
    """Return the processor time of bringing pages of a region."""
    time = constants.region_overhead + unmapping + runs * constants.copy_handling
    if not memory.known[region]:
        memory.known[region] = 1
        time += constants.first_overhead
    return time


@jit_bare
def is_apart(memory: Any, constants: Any, page: int) -> bool:
    """Return whether what faulted of a page is copied apart from the rest of it.

    The driver ends a copy where its cause changes between fault and prefetch
    (uvm_va_block.c, block_copy_resident_pages_between). Where a fault lies in its page is not in
    the trace; it is taken to be at the beginning.
    """
    part = constants.fault_bytes
    return (max(1, memory.faulted_bytes[page]) + part - 1) // part * part < constants.page


@jit_bare
def unmap(memory: Any, page: int) -> int:
    """Unmap a page from the CPU; return 1 if it was mapped there."""
    mapped = memory.page_data[page] & CPU_MAPPED
    memory.page_data[page] &= ~CPU_MAPPED & 0xFF
    return mapped


@jit_bare
def is_copied_in(memory: Any, region: int) -> bool:
    """Return whether the inward stream is copying this region."""
    return memory.books[0].in_busy and memory.books[0].in_region == region


@jit_bare
def wanted_pages(memory: Any, constants: Any, region: int) -> int:
    """Return how many pages of this region are wanted and did not fault."""
    base = region * constants.pages_per_region
    n = 0
    for page in range(base, base + memory.region_pages[region]):
        if memory.page_state[page] & (WANTED | FAULTED | NEAR | COMING) == WANTED:
            n += 1
    return n


@jit_bare
def make_room_for_wanted(
    memory: Any, constants: Any, relay: Any, region: int, faulted: int, taken: int
) -> Any:
    """Take frames for wanted pages too, where frames are pages; return a code and frames taken.

    Evictions call policies, which may request more pages. Wanted pages that find no room in this
    turn are dropped.
    """
    code = OK
    while constants.by_page and code == OK:
        more = faulted + wanted_pages(memory, constants, region) - taken
        if more <= 0:
            break
        code = make_room(memory, constants, relay, region, more)
        if code == OK:
            taken += more
        elif code == CUT:
            drop_wanted(memory, constants, region, taken - faulted)
            return OK, taken
    return code, taken


@jit_bare
def drop_wanted(memory: Any, constants: Any, region: int, keep: int) -> None:
    """Leave all wanted pages of this region far but the first ``keep``."""
    base = region * constants.pages_per_region
    for page in range(base, base + memory.region_pages[region]):
        if memory.page_state[page] & (WANTED | FAULTED | NEAR | COMING) == WANTED:
            if keep == 0:
                memory.page_state[page] &= ~WANTED & 0xFF
            else:
                keep -= 1
