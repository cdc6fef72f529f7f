"""OSL: the best lease for every block, if memory may grow and shrink (Li et al., described in
MEMSYS'19, section 2).

A touch renews its block's lease: the block stays for that many touches, and leaves unless it is
touched before.

    hits(b, l) = touches of b with an interval of at most l
    cost(b, l) = Σ min(interval, l) over b's touches

Leases are assigned greedily: the next step goes to the block and lease with the most additional
hits per additional cost, until N · C is spent. The steps of a block are the corners of the upper
hull of its (cost, hits). Their hits per cost fall from one to the next, so that the steps of all
blocks can be sorted once for all average sizes. The last touch of a block costs until its lease or
the sequence ends: the cost is exactly what the blocks occupy, and the average size no estimate. The
first step that does not fit is the end: the size is at most C.

Beware of hindsight: distributions are counted on the very sequence the leases are used on, as by Li
et al. The lease of a block with one interval is its future. If most blocks are used twice, OSL has
the same information as OPT. So OSL is a bound on what leases can do, not what a system reaches that
has to learn them.

Two simpler rankings of blocks for a fixed size, which MEMSYS'19 argues against in 4.2: the block
with the longest average interval between its touches leaves, or the one with the shortest lease.
Both are incomplete: once all blocks stay for their mean interval, or their lease, there is no more
to rank by. Of equals the one touched longest ago leaves, as under LRU.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidegate.analysis.exact.intervals import TouchSequence
from tidegate.compiled.jit import jit


class Steps(NamedTuple):
    """Steps, best first: ``block`` gets ``lease``, for additional ``hits`` and ``cost``."""

    block: NDArray[np.int64]
    lease: NDArray[np.int64]
    hits: NDArray[np.int64]
    cost: NDArray[np.int64]


def osl_misses(ids: ArrayLike, sizes: ArrayLike) -> NDArray[np.int64]:
    """Return the misses at each of these average sizes, first touches included.

    >>> osl_misses([0, 1, 2, 0, 1, 2], [0, 1, 3]).tolist()
    [6, 5, 3]
    """
    touches = TouchSequence.from_ids(ids)
    steps = osl_steps(touches)
    taken = _fitting(steps, np.asarray(sizes, np.float64) * len(touches.ids))
    return len(touches.ids) - np.append(0, np.cumsum(steps.hits))[taken]


def osl_leases(ids: ArrayLike, size: float) -> NDArray[np.int64]:
    """Return every block's lease for this average size; 0: it does not stay."""
    touches = TouchSequence.from_ids(ids)
    steps = osl_steps(touches)
    leases = np.zeros(touches.blocks, np.int64)
    taken = int(_fitting(steps, np.array(size * len(touches.ids))))
    np.maximum.at(leases, steps.block[:taken], steps.lease[:taken])
    return leases


def _fitting(steps: Steps, budget: NDArray[np.float64]) -> Any:
    return np.searchsorted(np.cumsum(steps.cost), np.floor(budget), side="right")


def osl_steps(touches: TouchSequence) -> Steps:
    """Return all steps by falling hits per cost; equal ones by block, so that the order is
    determined.
    """
    h = touches.histograms()
    end = np.zeros(touches.blocks, np.int64)  # from a block's last touch to the end of the sequence
    end[touches.ids] = len(touches.ids) - np.arange(len(touches.ids))
    room = len(h.interval)
    steps, hull = Steps(*np.empty((4, room), np.int64)), np.empty((room + 1, 3), np.int64)
    n = _corners(h.first, h.interval, h.upto, h.touches, end, hull, steps)
    steps = Steps(*(column[:n] for column in steps))
    order = np.argsort(-(steps.hits / steps.cost), kind="stable")
    return Steps(*(column[order] for column in steps))


@jit
def _corners(
    first: Any, interval: Any, upto: Any, touches: Any, end: Any, hull: Any, steps: Any
) -> int:
    """Write the hull's edges, block by block. Return their number.

    A corner is (hits, cost, lease).
    """
    n = 0
    for block in range(len(touches)):
        size, spent, before = 1, 0, 0
        hull[0] = 0
        for point in range(first[block], first[block + 1]):
            lease, hits = int(interval[point]), int(upto[point])
            spent += (hits - before) * lease
            before = hits
            # longer intervals cost the whole lease, the last touch at most until the end
            cost = spent + (touches[block] - 1 - hits) * lease + min(lease, end[block])
            while size > 1 and _above(hits, cost, hull[size - 1], hull[size - 2]):
                size -= 1
            hull[size, 0], hull[size, 1], hull[size, 2] = hits, cost, lease
            size += 1
        for i in range(1, size):
            steps.block[n], steps.lease[n] = block, hull[i, 2]
            steps.hits[n], steps.cost[n] = hull[i, 0] - hull[i - 1, 0], hull[i, 1] - hull[i - 1, 1]
            n += 1
    return n


@jit
def _above(hits: int, cost: int, top: Any, below: Any) -> bool:
    """Return whether (cost, hits) hides the corner ``top`` as seen from the corner ``below``."""
    return bool(
        float(hits - below[0]) * float(top[1] - below[1])
        >= float(top[0] - below[0]) * float(cost - below[1])
    )


def mean_interval_misses(ids: ArrayLike, capacity: int) -> int:
    """Return the misses if the block with the longest mean interval leaves.

    >>> mean_interval_misses([0, 1, 0, 2, 0, 1, 0, 2], 2)
    5
    """
    touches = TouchSequence.from_ids(ids)
    return int(_misses(touches.ids, -mean_intervals(touches), capacity))


def lease_misses(ids: ArrayLike, capacity: int) -> int:
    """Return the misses if the block with the shortest lease leaves.

    >>> lease_misses([0, 1, 0, 2, 0, 1, 0, 2], 2)
    5
    """
    touches = TouchSequence.from_ids(ids)
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
