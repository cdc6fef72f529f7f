"""2Q: a FIFO for new ids, and an LRU list for ids that return after leaving it (Johnson & Shasha,
VLDB 1994).

    in (FIFO, a quarter) → out (ghosts, half as many as fit)   A hit in the FIFO changes nothing:
    main (LRU) ← a miss of an id in "out"                      uses close together count as one.

Equal, miss for miss, to libCacheSim's TwoQ from 4 frames on; with fewer, libCacheSim has no FIFO
and always misses.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from tidegate.analysis.queues import append, queues_of, take, take_oldest
from tidegate.analysis.sequence import checked
from tidegate.compiled.jit import jit

IN_SHARE, OUT_SHARE = 0.25, 0.5  # the paper's, of the frames
_IN, _OUT, _MAIN = range(3)


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
        misses += at != _MAIN
        if at >= 0:
            take(q, id)
        if q.size[_IN] + q.size[_MAIN] >= capacity:
            if q.size[_IN] > most_in or q.size[_MAIN] == 0:
                append(q, _OUT, take_oldest(q, _IN))
                if q.size[_OUT] > most_out:
                    take_oldest(q, _OUT)
            else:
                take_oldest(q, _MAIN)
        append(q, _MAIN if at >= 0 else _IN, id)
    return misses
