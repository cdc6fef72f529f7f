"""Telling policies, and doing what they ask for.

    tell ──▶ call, for each policy that wants the event ──▶ carry_out: prefetch · advise · set_prefetch_threshold · observe …

Evictions asked for are kept in the list until ``frames.evict_asked``, for they may call policies
again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.intrinsics import call_at
from tidegate.compiled.jit import jit, jit_bare
from tidegate.policies.interface.events import (
    ASK_ADVISE,
    ASK_COUNT,
    ASK_EVICT,
    ASK_OBSERVE,
    ASK_PREFETCH,
    ASK_THRESHOLD,
    EVENT_BITS,
)
from tidegate.policies.interface.page_flags import COMING, NEAR, REMOTE, WANTED
from tidegate.simulation.gpu.codes import OK, RAISED
from tidegate.simulation.gpu.observation import leave_one_far

# Numba compiles a function anew for every constant it is called with; np.int64(…) keeps it to one.


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
    call_at(policy, m.own[which], event | region << EVENT_BITS)
    if b.request_n < 0:
        b.culprit, b.culprit_event = region, event
        return RAISED
    if b.request_n > 0:
        carry_out(m, k)
    return OK


@jit
def carry_out(m: Any, k: Any) -> None:
    """Do what policies asked for.

    Evictions are kept in the list for ``evict_asked``, which may call policies again.
    """
    b = m.books[0]
    kept = 0
    for i in range(b.request_n):
        verb, first, count, where = (
            m.requests[i, 0],
            m.requests[i, 1],
            m.requests[i, 2],
            m.requests[i, 3],
        )
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
def want_range(m: Any, k: Any, first: int, count: int) -> None:
    """Mark pages as wanted and put their regions in line; what is near, coming or kept far is left
    alone.
    """
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
