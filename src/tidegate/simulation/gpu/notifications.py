"""Notices: uses that counters saw are handled, and policies are asked what to observe next."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.intrinsics import call_at
from tidegate.compiled.jit import jit_bare
from tidegate.policies.interface.events import NOTIFICATION, OBSERVE
from tidegate.simulation.gpu.codes import NOT_RESIDENT, OK, RAISED
from tidegate.simulation.gpu.frames import evict_asked
from tidegate.simulation.gpu.observation import bring_home, take_samples
from tidegate.simulation.gpu.requests import call, carry_out

# Numba compiles a function anew for every constant it is called with; np.int64(…) keeps it to one.


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
            m.served[region] = b.turn
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
def ask_observe(m: Any, k: Any, relay: Any) -> int:
    """Ask the eviction policy which region to observe, once memory is nearly full and while there
    is room to.
    """
    b = m.books[0]
    free = k.frames - b.frames_used
    if not m.wants[0, OBSERVE] or free > k.observe_most * (k.pages_per_region if k.by_page else 1):
        return OK
    if b.observed_n >= k.observe_most or b.sampled_n >= k.counters:
        return OK
    region = call_at(relay.eviction, m.own[0], OBSERVE)
    b.culprit, b.culprit_event = region, OBSERVE
    if b.request_n < 0:
        return RAISED
    if b.request_n > 0:
        carry_out(m, k)
    if region < 0:
        return OK
    if region >= m.resident.size or m.resident[region] == 0:
        return NOT_RESIDENT
    if m.observed[region] == 0 and m.served[region] != b.turn:
        take_samples(m, k, region)
    return OK
