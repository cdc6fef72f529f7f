"""Compiled twins: the same decisions as a Python policy, for runs with millions of events.

A twin is a C function ``int64 (own, event)`` made with ``@jit_policy``. Its arrays are found
through ``own`` (see policies/interface/header.py); events are those of
policies/interface/events.py. The Python class stays the policy: it is what people read, what runs
on live memory and what tests hold the twin against, decision by decision.

    class LRM(EvictionPolicy):
        ...
        compiled = Twin(_lrm, words=list_words)

What a twin has at hand, and what it stands for in the class:

    append · prepend · remove · head · tail · before · after     self.order, or several orders
    is_served · is_resident · is_observed · has_faulted · last_touch     self.memory.…
    ask(own, ASK_PREFETCH, first, pages)                         self.memory.prefetch(first, pages) and the other verbs
    relay_to(own, i, event)                                      self.parts[i].on_…, victim() or observe()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import carray, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from tidegate.compiled.intrinsics import call_at
from tidegate.compiled.jit import jit_inner
from tidegate.policies.interface.events import EVENT_BITS, FAILED, REQUEST_ROWS
from tidegate.policies.interface.header import (
    LATEST,
    OBSERVED,
    OVERFULL,
    OWN,
    PAGE_STATE,
    PAGES_PER_REGION,
    PARTS,
    PARTS_N,
    REGION_BYTES,
    REGION_PAGES,
    REGIONS,
    REQUEST_N,
    REQUESTS,
    RESIDENT,
    SERVED,
    TURN,
)
from tidegate.policies.interface.last_touch import touch_of
from tidegate.policies.interface.page_flags import FAULTED
from tidegate.policies.interface.policy import Policy
from tidegate.policies.interface.visibility import Faults

_MOST = 1 << 62


class Twin:
    """Names a policy's compiled twin. ``words(regions)``: how many int64 words of its own it needs,
    all 0 at first.

    A twin that goes by options, or whose words do not begin as 0, has ``prepare(policy, regions,
    pages per region)``, which answers the words, when the policy's ``start`` has been called; one
    with something to report has ``results(policy, words)``, called after the run.
    """

    def __init__(
        self,
        function: Any,
        words: Callable[[int], int] = lambda regions: 0,
        prepare: Callable[[Any, int, int], NDArray[np.int64]] | None = None,
        results: Callable[[Any, NDArray[np.int64]], None] = lambda policy, words: None,
    ):
        self.function, self.results = function, results
        self.prepare = prepare or (
            lambda policy, regions, pages: np.zeros(words(regions), np.int64)
        )


def has_twin(policy: Policy) -> bool:
    """Can a compiled twin stand in for this policy?

    Its class must name one itself: a class made from a shipped one decides for itself. So must the
    classes of the policies it is made of, and each of those must see what the whole sees, or faults
    alone.
    """
    return vars(type(policy)).get("compiled") is not None and all(
        has_twin(part) and (part.sees == policy.sees or isinstance(part.sees, Faults))
        for part in policy.parts
    )


def own_words(
    regions: int, scalars: list[float | int], columns: int, more: int = 0
) -> NDArray[np.int64]:
    """A twin's words: some numbers, ``columns`` words per region, all 0, and ``more``.

    Fractions are kept as float64.
    """
    words = np.zeros(len(scalars) + columns * regions + more, np.int64)
    for i, value in enumerate(scalars):
        if isinstance(value, float):
            words[i : i + 1].view(np.float64)[0] = value
        else:
            words[i] = min(value, _MOST)
    return words


@intrinsic  # type: ignore[arg-type]
def _pointer(context: Any, address: Any, kind: Any = None) -> Any:
    """An address as a pointer to ``kind``."""
    element = kind.dtype
    signature = types.CPointer(element)(types.int64, kind)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return signature, codegen


@jit_inner
def words_at(address: int, size: int) -> Any:
    """``size`` int64 words at an address."""
    return carray(_pointer(address, types.int64), size)


@jit_inner
def grid_at(address: int, rows: int, columns: int) -> Any:
    """``rows`` × ``columns`` int64 words at an address."""
    return carray(_pointer(address, types.int64), (rows, columns))


@jit_inner
def halves_at(address: int, size: int) -> Any:
    """``size`` int32 words at an address."""
    return carray(_pointer(address, types.int32), size)


@jit_inner
def shorts_at(address: int, size: int) -> Any:
    """``size`` int16 words at an address."""
    return carray(_pointer(address, types.int16), size)


@jit_inner
def bytes_at(address: int, size: int) -> Any:
    """``size`` bytes at an address."""
    return carray(_pointer(address, types.uint8), size)


@jit_inner
def floats_at(address: int, size: int) -> Any:
    """``size`` float64 words at an address."""
    return carray(_pointer(address, types.float64), size)


@jit_inner
def scalars(own: int, size: int) -> Any:
    """The policy's first own words."""
    return words_at(own + 8 * OWN, size)


@jit_inner
def fractions(own: int, size: int) -> Any:
    """The policy's first own words, those that are fractions."""
    return floats_at(own + 8 * OWN, size)


@jit_inner
def column(own: int, before: int, number: int) -> Any:
    """A column of one word per region, behind ``before`` other words and ``number`` other columns."""
    n = words_at(own, OWN)[REGIONS]
    return words_at(own + 8 * (OWN + before + number * n), n)


# What self.memory shows


@jit_inner
def is_served(own: int, region: int) -> bool:
    """Was this region served in the driver's current turn?"""
    h = words_at(own, OWN)
    return words_at(h[SERVED] + REGION_BYTES * region, 1)[0] == words_at(h[TURN], 1)[0]


@jit_inner
def is_resident(own: int, region: int) -> bool:
    h = words_at(own, OWN)
    return halves_at(h[RESIDENT], h[REGIONS])[region] != 0


@jit_inner
def is_observed(own: int, region: int) -> bool:
    return shorts_at(words_at(own, OWN)[OBSERVED] + REGION_BYTES * region, 1)[0] > 0


@jit_inner
def has_faulted(own: int, region: int) -> bool:
    """Did any page of this region fault in the current turn?"""
    h = words_at(own, OWN)
    pages = halves_at(h[REGION_PAGES] + REGION_BYTES * region, 1)[0]
    state = bytes_at(h[PAGE_STATE] + region * h[PAGES_PER_REGION], pages)
    for i in range(pages):
        if state[i] & FAULTED:
            return True
    return False


@jit_inner
def latest_of(own: int, region: int) -> int:
    """The region's last touch and who made it (latest.py). Everything."""
    h = words_at(own, OWN)
    pages = h[PAGES_PER_REGION]
    return words_at(h[LATEST] + 8 * region * pages, pages).max()


@jit_inner
def last_touch(own: int, region: int) -> int:
    return touch_of(latest_of(own, region))


# The verbs


@jit_inner
def ask(own: int, verb: int, a: int, b: int = 0, c: int = 0) -> None:
    """Leave a request: see events.py. Who asks for more than there are rows has failed."""
    h = words_at(own, OWN)
    n = words_at(h[REQUEST_N], 1)
    if n[0] == REQUEST_ROWS:
        h[OVERFULL] = 1
        n[0] = -1
    if n[0] >= 0:
        row = words_at(h[REQUESTS] + 32 * n[0], 4)
        row[0], row[1], row[2], row[3] = verb, a, b, c
        n[0] += 1


# Policies made of policies


@jit_inner
def part_count(own: int) -> int:
    """How many policies this one is made of."""
    return words_at(own, OWN)[PARTS_N]


@jit_inner
def relay_to(own: int, part: int, event: int) -> int:
    """Relay an event to one of the policy's parts; FAILED if that has no ear for it, which to
    OBSERVE means none.
    """
    row = words_at(words_at(own, OWN)[PARTS] + 24 * part, 3)
    if not row[2] >> (event & ((1 << EVENT_BITS) - 1)) & 1:
        return FAILED
    return call_at(row[0], row[1], event)


# Doubly linked lists of regions in the policy's own words: next and previous of each of n + lists;
# entry n + i is the two ends of list i. A region that is in no list has next = 0, so links are kept
# one higher than they are. A region is in one list at most. Most policies have one list and say
# nothing of ends.


def list_words(regions: int, lists: int = 1) -> int:
    """Room for some lists."""
    return 2 * (regions + lists)


@jit_inner
def links(own: int, before: int = 0, lists: int = 1) -> Any:
    """The links of some lists, behind ``before`` other words: column 0 next, column 1 previous."""
    n = words_at(own, OWN)[REGIONS] + lists
    return grid_at(own + 8 * (OWN + before), n, 2)


@jit_inner
def remove(order: Any, region: int) -> None:
    """Take a region out of its list if it is in one."""
    after, before = order[region, 0], order[region, 1]
    if after:
        order[before - 1, 0], order[after - 1, 1] = after, before
        order[region, 0] = 0


@jit_inner
def append(order: Any, region: int, end: int = -1) -> None:
    """Put a region that is in no list at the tail of one: the one that ends here, or the last."""
    end = end if end >= 0 else order.shape[0] - 1
    last = order[end, 1] or end + 1
    order[last - 1, 0], order[region, 1] = region + 1, last
    order[region, 0], order[end, 1] = end + 1, region + 1


@jit_inner
def prepend(order: Any, region: int, end: int = -1) -> None:
    """Put a region that is in no list at the head of one."""
    end = end if end >= 0 else order.shape[0] - 1
    first = order[end, 0] or end + 1
    order[first - 1, 1], order[region, 0] = region + 1, first
    order[region, 1], order[end, 0] = end + 1, region + 1


@jit_inner
def contains(order: Any, region: int) -> bool:
    return order[region, 0] != 0


@jit_inner
def head(order: Any, end: int = -1) -> int:
    """The first region; -1 if there is none."""
    end = end if end >= 0 else order.shape[0] - 1
    return after(order, end, end)


@jit_inner
def tail(order: Any, end: int = -1) -> int:
    """The last region; -1 if there is none."""
    end = end if end >= 0 else order.shape[0] - 1
    return before(order, end, end)


@jit_inner
def before(order: Any, region: int, end: int = -1) -> int:
    """The region before this one; -1 if it is the first."""
    end = end if end >= 0 else order.shape[0] - 1
    found = order[region, 1] - 1
    return -1 if found == end else found


@jit_inner
def after(order: Any, region: int, end: int = -1) -> int:
    """The region after this one; -1 if it is the last."""
    end = end if end >= 0 else order.shape[0] - 1
    found = order[region, 0] - 1
    return -1 if found == end else found


@jit_inner
def first_unobserved(own: int, order: Any, most: int, end: int = -1) -> int:
    """The first region that is not observed, of a list's first few; FAILED if there is none."""
    region = head(order, end)
    while region >= 0 and most > 0:
        if not is_observed(own, region):
            return region
        region = after(order, region, end)
        most -= 1
    return FAILED
