"""ARC: a list of ids used once and one of ids used again, whose sizes adapt by ghosts (Megiddo &
Modha, FAST 2003).

    B1 ghosts ← T1 once │ T2 again → B2 ghosts        A miss of an id in B1 raises the target of
              target of T1's size ↑                   T1's size, one in B2 lowers it. The target is
                                                      not rounded.

Equal, miss for miss, to libCacheSim's ARC.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tidegate.analysis.queues import NOWHERE, append, queues_of, take, take_oldest
from tidegate.analysis.sequence import checked
from tidegate.compiled.jit import jit, jit_inline

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
