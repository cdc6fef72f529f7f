"""S3-FIFO: three FIFO queues (Yang et al., SOSP 2023).

    small (a tenth) ──used twice→ main (the rest): its oldest, if used, returns with one use less
          └─────────→ ghosts (as many as main) ──missed again→ main

Equal, miss for miss, to libCacheSim's S3FIFO from 20 frames on; with fewer, libCacheSim raises an
error or always misses. As in libCacheSim, ids go to main if small is full before the first
eviction.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tidegate.analysis.queues import append, queues_of, take, take_oldest
from tidegate.analysis.sequence import checked
from tidegate.compiled.jit import jit, jit_inline

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
