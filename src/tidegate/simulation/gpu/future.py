"""The future, for Belady: when each region would be touched if nothing were ever absent.

With many slots the order of touches depends on which slot stalls, so "the next touch" has no
policy-free meaning. We fix one: all slots walk their blocks in step, one touch each, and the n-th
touch of a region happens at its n-th place in that order. The number of a region's touches so far
then says when it is due next, however late some slot is. With one slot this is the exact future;
with many it is the future of an ideal run.

A touch of a region that holds no data is a birth: it costs the same whether or not the region was
near, so the region's data are due NEVER before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit
from tidegate.trace.trace import Ranges, Trace, check_segment

NEVER = np.iinfo(np.int32).max


class Future(NamedTuple):
    """``when[first[r] + n]``: the place of region r's n-th touch (from 0), NEVER after the last and
    for a birth.
    """

    first: NDArray[np.int64]
    when: NDArray[np.int32]


def foresee(
    trace: Trace, slots: int, progress: Callable[[int], None] = lambda touches: None
) -> Future:
    """Read the trace once and return its future: 4 bytes per touch, 8 while it is sorted."""
    ppr = trace.geometry.pages_per_region
    parts: list[NDArray[np.int32]] = []
    births: list[NDArray[np.bool_]] = []
    data = _Data(trace)
    for launch in trace.launches():
        lanes = max(1, slots // launch.width)
        walk = _Walk(
            np.zeros(0, np.int32),
            np.zeros(lanes, np.int64),
            np.zeros(lanes, np.int64),
            np.zeros(1, np.int64),
        )
        for s in launch.segments:
            check_segment(s, trace)
            walk = _Walk(*_take_along(walk, s.page))
            parts.append(_in_step(walk, s.starts, len(walk.page) - len(s.page), False))
            births.append(data.touch(parts[-1]))
            parts[-1] //= ppr
            progress(s.touches)
        parts.append(_in_step(walk, np.zeros(1, np.int64), 0, True))
        births.append(data.touch(parts[-1]))
        parts[-1] //= ppr
        data.free(launch.frees)
    order = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    if len(order) >= NEVER:
        raise MemoryError(
            "a trace for belady must have fewer than 2^31 touches, got more; take a shorter one"
        )
    first, when = _by_region(order.astype(np.int32, copy=False), trace.regions)
    if data.matters:
        _forget_births(order, np.concatenate(births), first, when)
    return Future(first, when)


class _Data:
    """Which pages hold data, and how many of each region. Kept from the first unwritten page on."""

    def __init__(self, trace: Trace):
        self._shift = trace.geometry.pages_per_region.bit_length() - 1
        unwritten = trace.unwritten()
        self.matters = trace.first_touch and bool(unwritten.any())
        self._holds = np.zeros(trace.pages, np.bool_)
        for o in trace.objects:
            self._holds[o.first_page : o.first_page + o.pages] = True
        if trace.first_touch:
            self._holds &= ~unwritten
        self._count = self._holds.reshape(trace.regions, -1).sum(axis=1)

    def touch(self, pages: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return which of these touches are births; the pages hold data then."""
        if not self.matters:
            return np.zeros(len(pages), np.bool_)
        return _touch_data(pages, self._holds, self._count, self._shift)

    def free(self, ranges: Ranges) -> None:
        """Let pages hold no data any more."""
        for first, end in ranges:
            self.matters = True
            dead = first + np.flatnonzero(self._holds[first:end])
            np.subtract.at(self._count, dead >> self._shift, 1)
            self._holds[first:end] = False


@jit
def _touch_data(pages: Any, holds: Any, count: Any, shift: int) -> Any:
    births = np.zeros(pages.size, np.bool_)
    for i in range(pages.size):
        page = pages[i]
        births[i] = count[page >> shift] == 0
        count[page >> shift] += not holds[page]
        holds[page] = True
    return births


@jit
def _forget_births(order: Any, births: Any, first: Any, when: Any) -> None:
    """Put NEVER at the place of each birth."""
    made = np.zeros(first.size, np.int64)
    for i in range(order.size):
        region = order[i]
        if births[i]:
            when[first[region] + made[region]] = NEVER
        made[region] += 1


class _Walk(NamedTuple):
    """Where each lane is in its block, page[at:end]; ``turn`` is the lane that touches next."""

    page: NDArray[np.int32]
    at: NDArray[np.int64]
    end: NDArray[np.int64]
    turn: NDArray[np.int64]


@jit
def _take_along(walk: Any, new: Any) -> Any:
    """Return the rest of the lanes' blocks, followed by the new segment's pages."""
    kept = (walk.end - walk.at).sum()
    page = np.empty(kept + new.size, np.int32)
    at, end = np.empty_like(walk.at), np.empty_like(walk.end)
    to = 0
    for lane in range(at.size):
        at[lane] = to
        for i in range(walk.at[lane], walk.end[lane]):
            page[to] = walk.page[i]
            to += 1
        end[lane] = to
    for i in range(new.size):
        page[to + i] = new[i]
    return page, at, end, walk.turn


@jit
def _in_step(walk: Any, starts: Any, offset: int, last: bool) -> Any:
    """Return pages in the order of an ideal run: each lane in turn makes one touch.

    A lane takes the next block at its block's end; without one the walk stops, unless ``last``.
    """
    out = np.empty(walk.page.size, np.int32)
    lanes = walk.at.size
    block, n, waiting = 0, 0, 0
    lane = walk.turn[0]
    while waiting < lanes:
        while walk.at[lane] == walk.end[lane] and block < starts.size - 1:
            walk.at[lane], walk.end[lane] = offset + starts[block], offset + starts[block + 1]
            block += 1
        if walk.at[lane] < walk.end[lane]:
            out[n] = walk.page[walk.at[lane]]
            n += 1
            walk.at[lane] += 1
            waiting = 0
        elif not last:
            break
        else:
            waiting += 1
        lane = (lane + 1) % lanes
    walk.turn[0] = lane
    return out[:n].copy()


@jit
def _by_region(order: Any, regions: int) -> Any:
    """Return the places of each region's touches, in order, by a counting sort."""
    first = np.zeros(regions + 1, np.int64)
    for region in order:
        first[region + 1] += 1
    for region in range(regions):
        first[region + 1] += first[region] + 1
    fill = first[:-1].copy()
    when = np.full(first[-1], NEVER, np.int32)
    for i in range(order.size):
        region = order[i]
        when[fill[region]] = i
        fill[region] += 1
    return first, when
