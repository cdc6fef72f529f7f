"""ARC, 2Q and S3-FIFO: caches that remember ids which have left, as ghosts.

Each counts the misses of one id sequence at one capacity, equal, miss for miss, to libCacheSim's
ARC, TwoQ (from 4 frames on; with fewer, libCacheSim has no FIFO and always misses) and S3FIFO (from
20 frames on; with fewer, libCacheSim raises an error or always misses).

ARC (Megiddo & Modha, FAST 2003): a list of ids used once and one of ids used again.

    B1 ghosts ← T1 once │ T2 again → B2 ghosts        A miss of an id in B1 raises the target of
              target of T1's size ↑                   T1's size, one in B2 lowers it. The target is
                                                      not rounded.

2Q (Johnson & Shasha, VLDB 1994): a FIFO for new ids, and an LRU list for ids that return.

    in (FIFO, a quarter) → out (ghosts, half as many as fit)   A hit in the FIFO changes nothing:
    main (LRU) ← a miss of an id in "out"                      uses close together count as one.

S3-FIFO (Yang et al., SOSP 2023): three FIFO queues.

    small (a tenth) ──used twice→ main (the rest): its oldest, if used, returns with one use less
          └─────────→ ghosts (as many as main) ──missed again→ main

As in libCacheSim, ids go to main if small is full before the first eviction.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidegate.analysis.sequence import checked
from tidegate.compiled.jit import jit, jit_inline

NOWHERE = -1


class Queues(NamedTuple):
    """Several lists of ids, each id in at most one of them.

    A list is a ring through a node of its own, whose number follows those of the ids. The oldest id
    comes after this node, the youngest before it. ``where``: the list of each id, or NOWHERE.
    ``size``: of each list.
    """

    after: NDArray[np.int32]
    before: NDArray[np.int32]
    where: NDArray[np.int8]
    size: NDArray[np.int64]


def queues_of(bound: int, lists: int) -> Queues:
    """Return empty lists for ids below ``bound``."""
    ring = np.arange(bound + lists, dtype=np.int32)
    return Queues(ring, ring.copy(), np.full(bound, NOWHERE, np.int8), np.zeros(lists, np.int64))


@jit_inline
def append(q: Any, at: int, id: Any) -> None:
    """Append an id that is in no list, as the youngest."""
    end = len(q.where) + at
    youngest = q.before[end]
    q.after[youngest], q.before[id] = id, youngest
    q.after[id], q.before[end] = end, id
    q.where[id] = at
    q.size[at] += 1


@jit_inline
def take(q: Any, id: Any) -> None:
    """Remove an id from its list."""
    after, before = q.after[id], q.before[id]
    q.after[before], q.before[after] = after, before
    q.size[q.where[id]] -= 1
    q.where[id] = NOWHERE


@jit_inline
def take_oldest(q: Any, at: int) -> Any:
    """Remove and return the oldest id of a list, which must not be empty."""
    id = q.after[len(q.where) + at]
    take(q, id)
    return id


_T1, _T2, _B1, _B2 = range(4)


def arc_misses(ids: ArrayLike, capacity: int) -> int:
    """Return the misses of ARC.

    >>> arc_misses([0, 1, 0, 2, 3, 0], capacity=2)
    4
    """
    array, bound = checked(ids, capacity)
    return int(_arc(array, int(capacity), queues_of(bound, 4)))


@jit
def _arc(ids: Any, capacity: int, q: Any) -> int:
    misses, target = 0, 0.0
    for i in range(len(ids)):
        id = ids[i]
        at = q.where[id]
        if at in (_T1, _T2):
            take(q, id)
            append(q, _T2, id)
            continue
        misses += 1
        if at == NOWHERE:
            _make_room(q, capacity, target)
            append(q, _T1, id)
            continue
        if at == _B1:
            target = min(target + max(q.size[_B2] / q.size[_B1], 1.0), float(capacity))
        else:
            target = max(target - max(q.size[_B1] / q.size[_B2], 1.0), 0.0)
        _replace(q, target, at == _B2)
        take(q, id)
        append(q, _T2, id)
    return misses


@jit_inline
def _make_room(q: Any, capacity: int, target: float) -> None:
    """Make room for an id that is in no list.

    T1 and B1 together hold at most as many ids as there are frames, all four lists twice as many.
    """
    near = q.size[_T1] + q.size[_T2]
    if q.size[_T1] == capacity:
        take_oldest(q, _T1)
    elif q.size[_T1] + q.size[_B1] == capacity:
        take_oldest(q, _B1)
        if near >= capacity:
            _replace(q, target, False)
    elif near >= capacity:
        if near + q.size[_B1] + q.size[_B2] == 2 * capacity:
            take_oldest(q, _B2)
        _replace(q, target, False)


@jit_inline
def _replace(q: Any, target: float, again: bool) -> None:
    """Evict from T1 if it is above its target, else from T2; the victim becomes a ghost."""
    once = q.size[_T1]
    from_once = once > 0 and (
        once > target or (again and np.float64(once) == target) or q.size[_T2] == 0
    )
    victim = take_oldest(q, _T1 if from_once else _T2)
    append(q, _B1 if from_once else _B2, victim)


IN_SHARE, OUT_SHARE = 0.25, 0.5  # the paper's, of the frames
_IN, _OUT, _LRU = range(3)


def two_q_misses(ids: ArrayLike, capacity: int) -> int:
    """Return the misses of 2Q, the paper's full version.

    >>> two_q_misses([0, 1, 2, 3, 4, 0, 5, 0], capacity=4)
    7
    """
    array, bound = checked(ids, capacity)
    most_in, most_out = int(capacity * IN_SHARE), int(capacity * OUT_SHARE)
    return int(_two_q(array, int(capacity), most_in, most_out, queues_of(bound, 3)))


@jit
def _two_q(ids: Any, capacity: int, most_in: int, most_out: int, q: Any) -> int:
    misses = 0
    for i in range(len(ids)):
        id = ids[i]
        at = q.where[id]
        if at == _IN:
            continue
        misses += at != _LRU
        if at >= 0:
            take(q, id)
        if q.size[_IN] + q.size[_LRU] >= capacity:
            if q.size[_IN] > most_in or q.size[_LRU] == 0:
                append(q, _OUT, take_oldest(q, _IN))
                if q.size[_OUT] > most_out:
                    take_oldest(q, _OUT)
            else:
                take_oldest(q, _LRU)
        append(q, _LRU if at >= 0 else _IN, id)
    return misses


SMALL_SHARE, GHOST_SHARE = 0.1, 0.9
USES_FOR_MAIN = 2
MOST_USES = 3  # two bits
_SMALL, _MAIN, _GHOSTS = range(3)


def s3_fifo_misses(ids: ArrayLike, capacity: int) -> int:
    """Return the misses of S3-FIFO.

    >>> s3_fifo_misses([0, 1, 2, 0], capacity=3)
    3
    """
    array, bound = checked(ids, capacity)
    small, ghosts = max(1, int(capacity * SMALL_SHARE)), int(capacity * GHOST_SHARE)
    uses = np.zeros(bound, np.int8)
    return int(_s3(array, int(capacity), small, ghosts, queues_of(bound, 3), uses))


@jit
def _s3(ids: Any, capacity: int, most_small: int, most_ghosts: int, q: Any, uses: Any) -> int:
    misses, full = 0, False
    for i in range(len(ids)):
        id = ids[i]
        at = q.where[id]
        if at in (_SMALL, _MAIN):
            uses[id] = min(uses[id] + 1, MOST_USES)
            continue
        misses += 1
        if at == _GHOSTS:
            take(q, id)
        while q.size[_SMALL] + q.size[_MAIN] >= capacity:
            full = True
            if q.size[_MAIN] > capacity - most_small or q.size[_SMALL] == 0:
                _evict_from_main(q, uses)
            else:
                _evict_from_small(q, uses, most_ghosts)
        uses[id] = 0
        to_main = at == _GHOSTS or (not full and q.size[_SMALL] >= most_small)
        append(q, _MAIN if to_main else _SMALL, id)
    return misses


@jit_inline
def _evict_from_main(q: Any, uses: Any) -> None:
    id = take_oldest(q, _MAIN)
    while uses[id] > 0:
        uses[id] -= 1
        append(q, _MAIN, id)
        id = take_oldest(q, _MAIN)


@jit_inline
def _evict_from_small(q: Any, uses: Any, most_ghosts: int) -> None:
    """Evict from small, unless all of its ids go to main."""
    while q.size[_SMALL] > 0:
        id = take_oldest(q, _SMALL)
        if uses[id] >= USES_FOR_MAIN:
            uses[id] = 0
            append(q, _MAIN, id)
            continue
        append(q, _GHOSTS, id)
        if q.size[_GHOSTS] > most_ghosts:
            take_oldest(q, _GHOSTS)
        break
