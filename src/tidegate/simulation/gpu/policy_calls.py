"""Calling policies, and executing what they request.

    send_event ──▶ call_policy, for each policy that handles the event
                     └─▶ execute_requests: prefetch · advise · threshold · observe · count · copies

Requested evictions and discards stay in the list until ``frames.evict_requested``, because they
call policies again.
"""

from __future__ import annotations

from typing import Any

from tidegate.compiled.intrinsics import call_at
from tidegate.compiled.jit import jit, jit_bare
from tidegate.policies.interface.events import (
    ASK_ADVISE,
    ASK_COUNT,
    ASK_DISCARD,
    ASK_EVICT,
    ASK_EVICT_ASYNC,
    ASK_OBSERVE,
    ASK_PREFETCH,
    ASK_PREFETCH_ASYNC,
    ASK_THRESHOLD,
    EVENT_BITS,
)
from tidegate.policies.interface.page_flags import (
    ADVISED_FAR,
    ARRIVING,
    COMING,
    NEAR,
    READ_MOSTLY,
    REMOTE,
    WANTED,
)
from tidegate.simulation.gpu.copy_orders import order_in, order_out
from tidegate.simulation.gpu.memory import OK, RAISED
from tidegate.simulation.gpu.observation import count_by, leave_one_far

BY_PLACEMENT = 3  # of a request in the list: the placement policy made it


@jit_bare
def send_event(memory: Any, constants: Any, relay: Any, event: int, region: int) -> int:
    """Send an event to every policy that handles it."""
    code = OK
    if memory.wants[0, event]:
        code = call_policy(memory, constants, relay.eviction, 0, event, region)
    if code == OK and memory.wants[1, event]:
        code = call_policy(memory, constants, relay.prefetch, 1, event, region)
    if code == OK and memory.wants[2, event]:
        code = call_policy(memory, constants, relay.placement, 2, event, region)
    return code


@jit_bare
def call_policy(
    memory: Any, constants: Any, policy: Any, which: int, event: int, region: int
) -> int:
    """Call one policy and execute what it requests."""
    books = memory.books[0]
    call_at(policy, memory.own[which], event | region << EVENT_BITS)
    if books.request_n < 0:
        books.failed_at, books.failed_event = region, event
        return RAISED
    if books.request_n > 0:
        execute_requests(memory, constants, which)
    return OK


@jit_bare
def query(memory: Any, constants: Any, relay: Any, event: int) -> Any:
    """Return a code and the region that the eviction policy answers to VICTIM or OBSERVE."""
    books = memory.books[0]
    region = call_at(relay.eviction, memory.own[0], event)
    books.failed_at, books.failed_event = region, event
    if books.request_n < 0:
        return RAISED, region
    if books.request_n > 0:
        execute_requests(memory, constants, 0)
    return OK, region


@jit_bare
def execute_requests(memory: Any, constants: Any, which: int) -> None:
    """Execute all requests but evictions and discards, which stay in the list.

    There they have the number of the policy that made them, from 1.
    """
    books, requests = memory.books[0], memory.requests
    leaving = 0
    for i in range(books.request_n):
        verb, first, count, advice = requests[i, 0], requests[i, 1], requests[i, 2], requests[i, 3]
        if verb == ASK_PREFETCH:
            queue_prefetch(memory, constants, first, count)
        elif verb == ASK_ADVISE:
            advise(memory, first, count, advice)
        elif verb == ASK_THRESHOLD:
            books.threshold = first
        elif verb == ASK_OBSERVE:
            leave_one_far(memory, constants, first)
        elif verb == ASK_COUNT:
            count_by(memory, constants, first, count, advice)
        elif verb == ASK_PREFETCH_ASYNC:
            order_in(memory, constants, first, count)
        elif verb == ASK_EVICT_ASYNC:
            order_out(memory, first)
        elif verb in (ASK_EVICT, ASK_DISCARD):
            requests[leaving, 0], requests[leaving, 1] = verb, first
            requests[leaving, 2] = count if count else which + 1
            leaving += 1
    books.request_n = leaving


@jit
def execute_first_requests(memory: Any, constants: Any, which: int) -> None:
    """Execute what a policy requests when it starts or finishes."""
    execute_requests(memory, constants, which)


@jit_bare
def advise(memory: Any, first: int, count: int, advice: int) -> None:
    """Set or take back an advice (events.ADVICE) for some pages."""
    for page in range(first, first + count):
        if advice == 0 and memory.sampled[page]:  # it is REMOTE until its sample ends
            memory.page_data[page] &= ~ADVISED_FAR & 0xFF
        elif advice == 0:
            memory.page_state[page] &= ~REMOTE & 0xFF
        elif advice == 1 and memory.sampled[page]:
            memory.page_data[page] |= ADVISED_FAR
        elif advice == 1:
            memory.page_state[page] |= REMOTE
        elif advice == 2:
            memory.page_data[page] |= READ_MOSTLY
        else:
            memory.page_data[page] &= ~READ_MOSTLY & 0xFF


@jit_bare
def queue_prefetch(memory: Any, constants: Any, first: int, count: int) -> None:
    """Mark pages as wanted and queue their regions, but for those near, on their way or remote."""
    books = memory.books[0]
    for page in range(first, first + count):
        region = page // constants.pages_per_region
        if page - region * constants.pages_per_region >= memory.region_pages[region]:
            continue  # the gap behind an object's end
        if memory.page_state[page] & (NEAR | COMING | ARRIVING | REMOTE):
            continue
        memory.page_state[page] |= WANTED
        if not memory.prefetch_queued[region]:
            memory.prefetch_queued[region] = 1
            end = (books.prefetch_head + books.prefetch_n) % memory.prefetch_ring.size
            memory.prefetch_ring[end] = region
            books.prefetch_n += 1
