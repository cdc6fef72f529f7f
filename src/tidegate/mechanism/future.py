"""The future, for Belady: when each region would be touched if nothing were ever absent.

In the slotted model the order of touches depends on who stalls, so "the next touch" has no policy-free meaning. We
fix one: all slots walk their blocks in step, one touch each, and the n-th touch of a region happens at its n-th place
in that order. A policy that knows how often a region has been touched so far then knows when it is due next, however
late some slot is. With one slot this is the exact future; with many it is the future of an ideal run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.jit import jit
from tidegate.trace.trace import Trace

NEVER = np.iinfo(np.int32).max


class Future(NamedTuple):
    """``when[first[r] + n]`` is the place of region r's n-th touch (from 0); NEVER follows the last."""

    first: NDArray[np.int64]
    when: NDArray[np.int32]


def foresee(trace: Trace, slots: int, progress: Callable[[int], None] = lambda touches: None) -> Future:
    """Read the trace once and put its future together: 4 bytes per touch, twice while it is being sorted."""
    ppr = trace.geometry.pages_per_region
    parts: list[NDArray[np.int32]] = []
    for launch in trace.launches():
        lanes = max(1, slots // launch.width)
        for s in launch.segments:
            parts.append(_in_step(s.starts, s.page, lanes, ppr))
            progress(s.touches)
    order = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    if len(order) >= NEVER:
        raise MemoryError("a trace of more than 2^31 touches is too long for belady")
    return Future(*_by_region(order, trace.regions))


@jit
def _in_step(starts: Any, page: Any, lanes: int, ppr: int) -> Any:
    """The regions in the order of an ideal run: every lane makes one touch in turn, and takes the next block at the end."""
    out = np.empty(page.size, np.int32)
    at = np.zeros(lanes, np.int64)
    end = np.zeros(lanes, np.int64)
    block, n = 0, 0
    while n < page.size:
        for lane in range(lanes):
            while at[lane] == end[lane] and block < starts.size - 1:
                at[lane], end[lane] = starts[block], starts[block + 1]
                block += 1
            if at[lane] < end[lane]:
                out[n] = page[at[lane]] // ppr
                n += 1
                at[lane] += 1
    return out


@jit
def _by_region(order: Any, regions: int) -> Any:
    """A counting sort: the places of each region's touches, in order, with NEVER behind each region's last."""
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
