"""Bounds on misses: Belady's, of policies in a fixed memory, and VMIN's, in C frames on average.

Belady (IBM Systems Journal 5(2), 1966): on a miss the id used furthest in the future leaves; ids
never used again leave first. Every miss is brought in (demand paging). No heap and no ids are
needed. The times of next use are all different, so the resident set is a set of future times: a
touch hits exactly if its own time is in the set, and the victim is the set's greatest member. The
set is a bitmap over time with summaries above it, one bit for 64, so that a few steps find its
greatest member.

VMIN (Prieve & Fabry, CACM 19(5), 1976): after each touch a block stays until its next one if that
is at most τ away; otherwise it leaves at once. A reuse at interval r costs r frame-touches, and
every hit has the same value. So taking the shortest intervals first until N · C is spent gives the
most hits. Of the intervals equal to τ, as many are taken as there is room for. At the size of a
fixed memory it has no more misses than Belady, whose hits occupy at most N · C, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidegate.analysis.sequence import Ids, checked, collapse
from tidegate.compiled.bits import highest
from tidegate.compiled.jit import jit, jit_inline

_ONE, _SIX, _LOW = np.uint64(1), np.uint64(6), np.uint64(63)


def belady_misses(ids: ArrayLike, capacity: int) -> int:
    """Return how many of the touches ``ids`` miss in ``capacity`` frames, first touches included.

    >>> belady_misses([0, 1, 2, 0, 1, 2], capacity=2)
    4
    """
    array, bound = checked(ids, capacity)
    return misses_of(next_uses(collapse(array), bound), capacity)


def next_uses(ids: Ids, bound: int) -> Ids:
    """Overwrite every id with the time of its next touch, or ``len(ids)`` if there is none."""
    _next_uses(ids, np.full(bound, len(ids), np.int32))
    return ids


def misses_of(uses: Ids, capacity: int) -> int:
    """Return Belady's misses, from the times of next use."""
    starts, words = [0], -(-len(uses) // 64)
    while words > 1:
        starts.append(starts[-1] + words)
        words = -(-words // 64)
    bits = np.zeros(starts[-1] + 1, np.uint64)  # the highest level is one word
    return int(_misses(uses, capacity, bits, np.array(starts, np.uint64)))


@jit
def _next_uses(ids: Any, seen: Any) -> None:
    for i in range(len(ids) - 1, -1, -1):
        id = np.uint64(ids[i])
        ids[i] = seen[id]
        seen[id] = i


@jit
def _misses(uses: Any, capacity: int, bits: NDArray[Any], starts: NDArray[Any]) -> int:
    """Count misses. A level's words begin at ``starts[level]`` of ``bits``; level 0 has a bit per
    touch.

    The bit of a hit stays set: it lies in the past, so it is never the greatest.
    """
    misses, finished = 0, 0  # finished: residents that are never used again
    never = len(uses)
    for i in range(len(uses)):
        now = np.uint64(i)
        if not (bits[now >> _SIX] >> (now & _LOW)) & _ONE:
            misses += 1
            if misses > capacity:
                if finished:
                    finished -= 1
                else:
                    _drop_greatest(bits, starts)
        if uses[i] == never:
            finished += 1
        else:
            _add(np.uint64(uses[i]), bits, starts)
    return misses


@jit_inline
def _add(time: Any, bits: Any, starts: Any) -> None:
    for level in range(len(starts)):
        word = starts[level] + (time >> _SIX)
        was = bits[word]
        bits[word] = was | (_ONE << (time & _LOW))
        if was:
            break
        time >>= _SIX


@jit_inline
def _drop_greatest(bits: Any, starts: Any) -> None:
    time = np.uint64(0)
    for level in range(len(starts) - 1, -1, -1):
        time = (time << _SIX) | highest(bits[starts[level] + time])
    for level in range(len(starts)):
        word = starts[level] + (time >> _SIX)
        bits[word] &= ~(_ONE << (time & _LOW))
        if bits[word]:
            break
        time >>= _SIX


def vmin_misses(ids: ArrayLike, sizes: ArrayLike) -> NDArray[np.int64]:
    """Return the misses at each of these average sizes, first touches included.

    >>> vmin_misses([0, 1, 2, 0, 1, 2], [0, 1, 2]).tolist()
    [6, 4, 3]
    """
    array, bound = checked(ids, capacity=1)
    n = len(array)
    uses = next_uses(array.copy(), bound)
    intervals = (uses - np.arange(n, dtype=np.int64))[uses < n]
    intervals.sort()
    budget = np.floor(np.asarray(sizes, np.float64) * n)
    return n - np.searchsorted(np.cumsum(intervals), budget, side="right")
