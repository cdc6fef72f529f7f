"""Frames: evicting regions to make room, and migrating pages into it.

make_room ──▶ query the policy for a victim and evict it, until enough frames are free
evict     ──▶ send the event, write back, free the frames
migrate   ──▶ faulted and wanted pages are COMING until the turn ends
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.jit import jit_bare
from tidegate.policies.interface.events import EVICTION, VICTIM
from tidegate.policies.interface.page_flags import (
    COMING,
    CPU_MAPPED,
    DIRTY,
    FAULTED,
    NEAR,
    TOUCHED,
    WANTED,
)
from tidegate.simulation.gpu.memory import CUT, NOT_RESIDENT, OK
from tidegate.simulation.gpu.observation import count_eviction, drop_samples
from tidegate.simulation.gpu.policy_calls import query, send_event

# Numba compiles a function anew for every constant it is called with; np.int64(…) keeps it to one.


@jit_bare
def make_room(memory: Any, constants: Any, relay: Any, region: int, pages: int) -> int:
    """Take frames for ``pages`` more pages of a region, evicting while too few are free.

    CUT: the victim was served in this turn. Where frames are regions, a resident region has one.
    """
    books = memory.books[0]
    need = pages if constants.by_page else 1
    if not constants.by_page and memory.resident[region] > 0:
        return OK
    while books.frames_used + need > constants.frames:
        books.decisions += 1
        books.turn_policy += constants.decision
        code, victim = query(memory, constants, relay, np.int64(VICTIM))
        if code != OK:
            return code
        if victim < 0 or victim >= memory.resident.size:
            return NOT_RESIDENT
        if memory.served[victim] == books.turn:
            return CUT
        if memory.resident[victim] == 0:
            return NOT_RESIDENT
        code = evict(memory, constants, relay, victim)
        if code != OK:
            return code
    books.frames_used += need
    books.frames_peak = max(books.frames_peak, books.frames_used)
    return OK


@jit_bare
def evict(memory: Any, constants: Any, relay: Any, region: int) -> int:
    """Send a region far.

    Every near page is written back; with ``dirty_only``, dirty ones only.
    """
    books = memory.books[0]
    books.evictions += 1
    memory.region_evictions[region] += 1
    code = send_event(memory, constants, relay, np.int64(EVICTION), region)
    if code != OK:
        return code
    held = drop_samples(memory, constants, region) if memory.observed[region] > 0 else 0
    if constants.observe_most > 0:
        count_eviction(memory, constants, region)
    base = region * constants.pages_per_region
    pages = dirty = untouched = 0
    for page in range(base, base + memory.region_pages[region]):
        state = memory.page_state[page]
        if state & NEAR:
            pages += 1
            if state & DIRTY:
                dirty += 1
            if not state & TOUCHED:
                untouched += 1
            memory.page_state[page] = state & ~(NEAR | TOUCHED | DIRTY) & 0xFF
    back = dirty if constants.dirty_only else pages
    books.pages_evicted += pages
    books.pages_written_back += back
    books.pages_unused += untouched
    books.turn_out += back * constants.out_per_page
    memory.resident[region] = 0
    books.frames_used -= pages + held if constants.by_page else 1
    return OK


@jit_bare
def evict_requested(memory: Any, constants: Any, relay: Any) -> int:
    """Evict regions at policies' request, but for those gone already or served in this turn."""
    books = memory.books[0]
    while books.request_n > 0:
        books.request_n -= 1
        region = memory.requests[books.request_n, 1]
        if memory.resident[region] > 0 and memory.served[region] != books.turn:
            code = evict(memory, constants, relay, region)
            if code != OK:
                return code
    return OK


@jit_bare
def migrate(memory: Any, constants: Any, region: int, taken: int) -> None:
    """Migrate the region's faulted and wanted pages, at most ``taken`` of them."""
    books = memory.books[0]
    base = region * constants.pages_per_region
    pages = runs = mapped = prefetched = 0
    before = -2
    for page in range(base, base + memory.region_pages[region]):
        state = memory.page_state[page]
        if state & (FAULTED | WANTED) and not state & (NEAR | COMING):
            memory.coming[books.coming_n] = page
            books.coming_n += 1
            pages += 1
            if page != before + 1:
                runs += 1
            before = page
            if state & CPU_MAPPED:
                mapped += 1
            if not state & FAULTED:
                prefetched += 1
            state |= COMING
        memory.page_state[page] = (
            state & ~(FAULTED | WANTED) & (~CPU_MAPPED & 0xFF if state & COMING else 0xFF)
        )
    if constants.by_page:
        books.frames_used -= taken - pages  # a policy may have left some far
    memory.resident[region] += pages
    memory.region_pages_in[region] += pages
    books.pages_in += pages
    books.runs_in += runs
    books.pages_prefetched += prefetched
    books.turn_handling += constants.region_overhead + mapped * constants.unmap_per_page
    books.turn_in += runs * constants.run_overhead + pages * constants.in_per_page


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
