"""Remaining reuse distances: other ids touched between an id's eviction and its return.

GMT (ASPLOS'24) calls it RRD. Its Figure 7 shows the distribution at evictions from Tier-1, which
uses CLOCK. An id that never returns has none.

    >>> remaining_distances([0, 1, 2, 3, 1, 0], capacity=3).tolist()
    [2]

0 left when 3 came; 3 and 1 were touched until it was back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidegate.analysis.sequence import checked
from tidegate.compiled.fenwick import add, sum_to
from tidegate.compiled.jit import jit


def remaining_distances(ids: ArrayLike, capacity: int) -> NDArray[np.int32]:
    """Return the distance of every id that CLOCK evicts from ``capacity`` frames and that comes
    back, in order of return.
    """
    return remaining_by_id(ids, capacity)[1]


def remaining_by_id(ids: ArrayLike, capacity: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the ids that come back, and their distances."""
    array, bound = checked(ids, capacity)
    found, tree = np.empty((2, len(array)), np.int32), np.zeros(len(array) + 1, np.int32)
    frames = np.full(min(capacity, max(1, bound)), -1, np.int32)
    count = _remaining(array, frames, np.full((2, bound), -1, np.int32), tree, found)
    return found[0, :count].copy(), found[1, :count].copy()


def reuse_pairs(ids: ArrayLike) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return for every touch but first ones the touches since the id's last (virtual time), and the
    other ids among them (reuse distance).

    >>> [part.tolist() for part in reuse_pairs([0, 1, 1, 0, 1])]
    [[1, 3, 2], [0, 1, 1]]
    """
    array, bound = checked(ids, 1)
    found = np.empty((2, len(array)), np.int32)
    count = _pairs(array, np.full(bound, -1, np.int32), np.zeros(len(array) + 1, np.int32), found)
    return found[0, :count].copy(), found[1, :count].copy()


def shares(distances: NDArray[np.int32], near: int, middle: int) -> tuple[float, float, float]:
    """Return the shares of distances below ``near``, below ``near + middle``, and beyond: Figure
    7's vertical lines.

    >>> shares(np.array([1, 5, 9, 20], np.int32), near=4, middle=8)
    (0.25, 0.5, 0.25)
    """
    count = max(1, len(distances))
    short, reached = int((distances < near).sum()), int((distances < near + middle).sum())
    return short / count, (reached - short) / count, (len(distances) - reached) / count


@jit
def _remaining(ids: Any, frames: Any, last: Any, tree: Any, found: Any) -> int:
    """Find the distances in one pass: CLOCK as in ``clock_misses``, and a mark at each id's latest
    touch, counted by partial sums. The touch ``now`` has its mark at now + 1.

    ``last[0]`` is an id's latest touch, ``last[1]`` the touch at which it was evicted, or -1 while
    it is resident.
    """
    state = np.zeros(last.shape[1], np.uint8)  # 0 absent, 1 resident, 2 referenced
    hand = misses = count = 0
    for now in range(len(ids)):
        id = ids[now]
        if state[id] != 0:
            state[id] = 2
        else:
            if last[1, id] >= 0:
                # marks are at latest touches, so those since the eviction are ids touched since
                found[0, count] = id
                found[1, count] = sum_to(tree, now) - sum_to(tree, last[1, id])
                count += 1
            if misses >= len(frames):
                while state[frames[hand]] == 2:
                    state[frames[hand]] = 1
                    hand = (hand + 1) % len(frames)
                state[frames[hand]] = 0
                last[1, frames[hand]] = now
            misses += 1
            frames[hand] = id
            state[id] = 1
            hand = (hand + 1) % len(frames)
        if last[0, id] >= 0:
            add(tree, last[0, id] + 1, -1)
        add(tree, now + 1, 1)
        last[0, id] = now
    return count


@jit
def _pairs(ids: Any, last: Any, tree: Any, found: Any) -> int:
    count = 0
    for now in range(len(ids)):
        id = ids[now]
        if last[id] >= 0:
            found[0, count] = now - last[id]
            found[1, count] = sum_to(tree, now) - sum_to(tree, last[id] + 1)
            count += 1
            add(tree, last[id] + 1, -1)
        add(tree, now + 1, 1)
        last[id] = now
    return count
