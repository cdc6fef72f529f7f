"""Operations of compiled policies on ``self.memory`` of the simulated GPU, and on their parts."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from tidegate.compiled.addresses import load, load8, load16, load32, load_fixed, outside, store
from tidegate.compiled.intrinsics import call_at
from tidegate.compiled.jit import jit_within as primitive
from tidegate.policies.interface.compiling.header import (
    FRAMES,
    FUTURE_FIRST,
    FUTURE_WHEN,
    LATEST,
    OBSERVABLE,
    OBSERVED,
    PAGE_STATE,
    PAGES_PER_REGION,
    PART_WORDS,
    PARTS,
    PARTS_N,
    REGION_BYTES,
    REGION_PAGES,
    REGION_TOUCHES,
    REGIONS,
    REQUEST_N,
    REQUESTS,
    RESIDENT,
    SERVED,
    TOUCHES,
    TURN,
)
from tidegate.policies.interface.events import (
    ASK_ADVISE,
    ASK_COUNT,
    ASK_EVICT,
    ASK_OBSERVE,
    ASK_PREFETCH,
    ASK_THRESHOLD,
    EVENT_BITS,
    FAILED,
    NO_TREE,
    OBSERVE,
    REQUEST_ROWS,
    VICTIM,
)
from tidegate.policies.interface.last_touch import touch_of
from tidegate.policies.interface.page_flags import FAULTED


@primitive
def frames(block):
    return load_fixed(block + 8 * FRAMES)


@primitive
def regions(block):
    return load_fixed(block + 8 * REGIONS)


@primitive
def observable(block):
    return load_fixed(block + 8 * OBSERVABLE)


@primitive
def pages_per_region(block):
    return load_fixed(block + 8 * PAGES_PER_REGION)


@primitive
def now(block):
    return load(load_fixed(block + 8 * TOUCHES))


@primitive
def _check(block, region):
    if outside(region, load_fixed(block + 8 * REGIONS)):
        raise IndexError("no such region")


@primitive
def is_served(block, region):
    _check(block, region)
    served = load(load_fixed(block + 8 * SERVED) + REGION_BYTES * region)
    return served == load(load_fixed(block + 8 * TURN))


@primitive
def is_resident(block, region):
    _check(block, region)
    return load32(load_fixed(block + 8 * RESIDENT) + 4 * region) != 0


@primitive
def resident_next(block, cursor):
    """Return the next resident region behind this one, -1 if there is none."""
    here, count = load_fixed(block + 8 * RESIDENT), load_fixed(block + 8 * REGIONS)
    for region in range(cursor + 1, count):
        if load32(here + 4 * region):
            return region
    return -1


@primitive
def resident_len(block):
    here, count = load_fixed(block + 8 * RESIDENT), 0
    for region in range(load_fixed(block + 8 * REGIONS)):
        count += load32(here + 4 * region) != 0
    return count


@primitive
def is_observed(block, region):
    _check(block, region)
    return load16(load_fixed(block + 8 * OBSERVED) + REGION_BYTES * region) > 0


@primitive
def is_observed_unchecked(block, region):
    """Return the same of a region that comes from an order: it is in range."""
    return load16(load_fixed(block + 8 * OBSERVED) + REGION_BYTES * region) > 0


@primitive
def faulted_next(block, region, cursor):
    """Return the next page, as a number within the region, that faulted; -1 if there is none."""
    _check(block, region)
    state = load_fixed(block + 8 * PAGE_STATE) + region * load_fixed(block + 8 * PAGES_PER_REGION)
    pages = load32(load_fixed(block + 8 * REGION_PAGES) + REGION_BYTES * region)
    for page in range(cursor + 1, pages):
        if load8(state + page) & FAULTED:
            return page
    return -1


@primitive
def faulted_len(block, region):
    _check(block, region)
    state = load_fixed(block + 8 * PAGE_STATE) + region * load_fixed(block + 8 * PAGES_PER_REGION)
    count = 0
    for page in range(load32(load_fixed(block + 8 * REGION_PAGES) + REGION_BYTES * region)):
        count += (load8(state + page) & FAULTED) != 0
    return count


@primitive
def last_touch(block, region):
    _check(block, region)
    pages = load_fixed(block + 8 * PAGES_PER_REGION)
    first = load_fixed(block + 8 * LATEST) + 8 * pages * region
    latest = load(first)
    for page in range(1, pages):
        latest = max(latest, load(first + 8 * page))
    return touch_of(latest)


@primitive
def touch_count(block, region):
    _check(block, region)
    return load(load_fixed(block + 8 * REGION_TOUCHES) + 8 * region)


@primitive
def next_touch(block, region):
    _check(block, region)
    made = load(load_fixed(block + 8 * REGION_TOUCHES) + 8 * region)
    place = load(load_fixed(block + 8 * FUTURE_FIRST) + 8 * region) + made
    return load32(load_fixed(block + 8 * FUTURE_WHEN) + 4 * place)


# The verbs


@primitive
def _ask(block, verb, a, b, c):
    count = load_fixed(block + 8 * REQUEST_N)
    n = load(count)
    if n == REQUEST_ROWS:
        raise OverflowError("too many requests in one call")
    if n >= 0:
        request = load_fixed(block + 8 * REQUESTS) + 32 * n
        store(request, verb)
        store(request + 8, a)
        store(request + 16, b)
        store(request + 24, c)
        store(count, n + 1)


@primitive
def _check_pages(block, first, pages):
    most = load_fixed(block + 8 * REGIONS) * load_fixed(block + 8 * PAGES_PER_REGION)
    if pages < 1 or first < 0 or first + pages > most:
        raise ValueError("no such pages")


@primitive
def prefetch(block, first_page, pages=1):
    _check_pages(block, first_page, pages)
    _ask(block, ASK_PREFETCH, first_page, pages, 0)


@primitive
def evict(block, region):
    if not is_resident(block, region):
        raise ValueError("the region is not resident")
    _ask(block, ASK_EVICT, region, 0, 0)


@primitive
def advise_far(block, first_page, pages):
    _check_pages(block, first_page, pages)
    _ask(block, ASK_ADVISE, first_page, pages, 1)


@primitive
def advise_none(block, first_page, pages):
    _check_pages(block, first_page, pages)
    _ask(block, ASK_ADVISE, first_page, pages, 0)


@primitive
def observe_prefetched(block, region):
    _ask(block, ASK_OBSERVE, region, 0, 0)


@primitive
def count_remote(block, accesses):
    _ask(block, ASK_COUNT, accesses, 0, 0)


@primitive
def set_prefetch_threshold(block, percent):
    if percent < 0 or percent > NO_TREE:
        raise ValueError("no such threshold")
    _ask(block, ASK_THRESHOLD, percent, 0, 0)


# Parts


@primitive
def parts_len(block):
    return load_fixed(block + 8 * PARTS_N)


@primitive
def _call(block, part, event):
    """Relay an event to a part and return its answer; FAILED if it does not handle the event."""
    if outside(part, load_fixed(block + 8 * PARTS_N)):
        raise IndexError("no such part")
    here = load_fixed(block + 8 * PARTS) + 8 * PART_WORDS * part
    if not load_fixed(here + 16) >> (event & ((1 << EVENT_BITS) - 1)) & 1:
        return FAILED
    found = call_at(load_fixed(here), load_fixed(here + 8), event)
    if load(load_fixed(block + 8 * REQUEST_N)) < 0:
        raise RuntimeError("a part failed")
    return found


@primitive
def part_relay(block, part, kind, number):
    _call(block, part, kind | number << EVENT_BITS)


@primitive
def part_victim(block, part):
    return _call(block, part, VICTIM)


@primitive
def part_observe(block, part):
    found = _call(block, part, OBSERVE)
    return None if found < 0 else found
