"""Two simpler rankings of blocks for a fixed size, which MEMSYS'19 argues against in 4.2.

mean interval  the block with the longest average interval between its touches leaves
OSL lease      the block with the shortest lease leaves, for OSL's leases at this size

Both are incomplete: once all blocks stay for their mean interval, or their lease, there is no more
to rank by. Of equals the one touched longest ago leaves, as under LRU. Distributions are those of
the whole sequence, as for exact LEU.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidegate.analysis.exact.intervals import TouchSequence
from tidegate.analysis.exact.osl import osl_leases
from tidegate.compiled.jit import jit


def mean_interval_misses(ids: ArrayLike, capacity: int) -> int:
    """Return the misses if the block with the longest mean interval leaves.

    >>> mean_interval_misses([0, 1, 0, 2, 0, 1, 0, 2], 2)
    5
    """
    touches = TouchSequence.of(ids)
    return int(_misses(touches.ids, -mean_intervals(touches), capacity))


def lease_misses(ids: ArrayLike, capacity: int) -> int:
    """Return the misses if the block with the shortest lease leaves.

    >>> lease_misses([0, 1, 0, 2, 0, 1, 0, 2], 2)
    5
    """
    touches = TouchSequence.of(ids)
    worth = osl_leases(touches.ids, capacity).astype(np.float64)
    return int(_misses(touches.ids, worth, capacity))


def mean_intervals(touches: TouchSequence) -> NDArray[np.float64]:
    """Return every block's mean interval; that of one touched once is infinite."""
    where = np.arange(len(touches.ids))
    count = np.bincount(touches.ids, minlength=touches.blocks)
    first = np.full(touches.blocks, len(where))
    last = np.zeros(touches.blocks, np.int64)
    np.minimum.at(first, touches.ids, where)
    np.maximum.at(last, touches.ids, where)
    with np.errstate(divide="ignore"):
        return np.where(count > 1, (last - first) / np.maximum(count - 1, 1), np.inf)


@jit
def _misses(ids: Any, worth: Any, capacity: int) -> int:
    """Count misses; the resident block of the lowest worth leaves, of equals the oldest."""
    last = np.full(len(worth), -1)  # the latest touch of a resident block
    heap = [(0.0, -1, -1) for _ in range(0)]
    misses = held = 0
    for now in range(len(ids)):
        block = ids[now]
        if last[block] < 0:
            misses += 1
            while held == capacity:
                _, when, other = heappop(heap)
                if last[other] == when:  # otherwise it was touched since
                    last[other] = -1
                    held -= 1
            held += 1
        last[block] = now
        heappush(heap, (worth[block], now, np.int64(block)))  # type: ignore[misc]
    return misses
