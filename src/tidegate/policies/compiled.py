"""Compiled twins: the same decisions as a Python policy, for runs with millions of events.

A twin is a C function ``int64 (own, event)`` made with ``@jit_policy``. Its arrays are found through ``own`` (see
mechanism/header.py); events are those of mechanism/events.py. The Python class stays the policy: it is what people
read, what runs on live memory and what tests hold the twin against, decision by decision.

    class LRM(EvictionPolicy):
        ...
        compiled = Twin(_lrm, words=list_words)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import carray, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from tidegate.jit import jit_inner
from tidegate.mechanism.header import OWN, PINNED, REGIONS, TURN


class Twin:
    """Names a policy's compiled twin. ``words(regions)``: how many int64 words of its own it needs, all 0 at first.

    A twin that goes by options, or whose words do not begin as 0, has ``prepare(policy, regions, pages per region)``, which
    answers the words; one with something to report has ``results(policy, words)``, called after the run.
    """

    def __init__(
        self,
        function: Any,
        words: Callable[[int], int] = lambda regions: 0,
        prepare: Callable[[Any, int, int], NDArray[np.int64]] | None = None,
        results: Callable[[Any, NDArray[np.int64]], None] = lambda policy, words: None,
    ):
        self.function, self.results = function, results
        self.prepare = prepare or (lambda policy, regions, pages: np.zeros(words(regions), np.int64))


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
def is_pinned(own: int, region: int) -> bool:
    """Was this region served in the driver's current turn?"""
    h = words_at(own, OWN)
    return words_at(h[PINNED], h[REGIONS])[region] == words_at(h[TURN], 1)[0]


# A doubly linked list of regions in the policy's own words: next[n+1], then previous[n+1]; entry n is the two ends.
# A region that is not in the list has next = 0, so links are kept one higher than they are.


def list_words(regions: int) -> int:
    """Room for one list."""
    return 2 * (regions + 1)


@jit_inner
def links(own: int) -> Any:
    """The list's links: row 0 next, row 1 previous."""
    n = words_at(own, OWN)[REGIONS] + 1
    return words_at(own + 8 * OWN, 2 * n).reshape(2, n)


@jit_inner
def remove(order: Any, region: int) -> None:
    """Take a region out of the list if it is there."""
    after, before = order[0, region], order[1, region]
    if after:
        order[0, before - 1], order[1, after - 1] = after, before
        order[0, region] = 0


@jit_inner
def append(order: Any, region: int) -> None:
    """Put a region that is not in the list at its tail."""
    end = order.shape[1] - 1
    last = order[1, end] or end + 1
    order[0, last - 1], order[1, region] = region + 1, last
    order[0, region], order[1, end] = end + 1, region + 1


@jit_inner
def contains(order: Any, region: int) -> bool:
    return order[0, region] != 0


@jit_inner
def head(order: Any) -> int:
    """The first region; -1 if there is none."""
    end = order.shape[1] - 1
    first = order[0, end] - 1
    return -1 if first == end else first


@jit_inner
def tail(order: Any) -> int:
    """The last region; -1 if there is none."""
    end = order.shape[1] - 1
    last = order[1, end] - 1
    return -1 if last == end else last


@jit_inner
def before(order: Any, region: int) -> int:
    """The region before this one; -1 if it is the first."""
    end = order.shape[1] - 1
    found = order[1, region] - 1
    return -1 if found == end else found


@jit_inner
def floats_at(address: int, size: int) -> Any:
    """``size`` float64 words at an address."""
    return carray(_pointer(address, types.float64), size)
