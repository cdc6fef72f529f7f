"""Frames: room is made for what comes, what leaves is sent far, what comes is set moving.

make_room ──▶ ask the policy for a victim, evict it, until there are frames enough
evict     ──▶ tell the policies, copy back, free the frames
migrate   ──▶ faulted and wanted pages are COMING until the turn ends
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.intrinsics import call_at
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
from tidegate.simulation.gpu.codes import CUT, NOT_RESIDENT, OK, RAISED
from tidegate.simulation.gpu.observation import forget, watch_leaving
from tidegate.simulation.gpu.requests import carry_out, tell

# Numba compiles a function anew for every constant it is called with; np.int64(…) keeps it to one.


@jit_bare
def make_room(m: Any, k: Any, relay: Any, region: int, pages: int) -> int:
    """Take the frames for ``pages`` more pages of a region, evicting if too few are free.

    CUT: the victim was served in this turn. A region whose frame is the whole region needs one,
    once.
    """
    b = m.books[0]
    need = pages if k.by_page else 1
    if not k.by_page and m.resident[region] > 0:
        return OK
    while b.frames_used + need > k.frames:
        b.decisions += 1
        b.turn_policy += k.decision
        victim = call_at(relay.eviction, m.own[0], VICTIM)
        b.culprit, b.culprit_event = victim, VICTIM
        if b.request_n < 0:
            return RAISED
        if b.request_n > 0:
            carry_out(m, k)
        if victim < 0 or victim >= m.resident.size:
            return NOT_RESIDENT
        if m.served[victim] == b.turn:
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
    """Send a region far.

    Every near page is copied back; with ``dirty_only`` just those that were written.
    """
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
def evict_asked(m: Any, k: Any, relay: Any) -> int:
    """Evict what policies asked to be evicted, unless it is gone already or was served in this very
    turn.
    """
    b = m.books[0]
    while b.request_n > 0:
        b.request_n -= 1
        region = m.requests[b.request_n, 1]
        if m.resident[region] > 0 and m.served[region] != b.turn:
            code = evict(m, k, relay, region)
            if code != OK:
                return code
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
        m.page_state[page] = (
            state & ~(FAULTED | WANTED) & (~CPU_MAPPED & 0xFF if state & COMING else 0xFF)
        )
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
    """Where frames are pages, what is wanted beside the faults needs some too; answers a code and
    the frames taken.

    Policies that hear of an eviction may want still more. What there is no room for in this turn is
    wanted no longer.
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
