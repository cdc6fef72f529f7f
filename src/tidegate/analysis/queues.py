"""Queues: several lists of ids, each id in one of them at most. Flat caches with ghosts are made of
these.

A list is a ring through a node of its own, behind those of the ids: the oldest id comes after it,
the youngest before it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit_inline

NOWHERE = -1


class Queues(NamedTuple):
    """``where``: the list of each id, or NOWHERE. ``size``: of each list."""

    after: NDArray[np.int32]
    before: NDArray[np.int32]
    where: NDArray[np.int8]
    size: NDArray[np.int64]


def queues_of(bound: int, lists: int) -> Queues:
    """So many empty lists for ids below ``bound``."""
    ring = np.arange(bound + lists, dtype=np.int32)
    return Queues(ring, ring.copy(), np.full(bound, NOWHERE, np.int8), np.zeros(lists, np.int64))


@jit_inline
def append(q: Any, at: int, id: Any) -> None:
    """Put an id that is in no list at the young end."""
    end = len(q.where) + at
    youngest = q.before[end]
    q.after[youngest], q.before[id] = id, youngest
    q.after[id], q.before[end] = end, id
    q.where[id] = at
    q.size[at] += 1


@jit_inline
def take(q: Any, id: Any) -> None:
    """Take an id out of the list it is in."""
    after, before = q.after[id], q.before[id]
    q.after[before], q.before[after] = after, before
    q.size[q.where[id]] -= 1
    q.where[id] = NOWHERE


@jit_inline
def take_oldest(q: Any, at: int) -> Any:
    """Take the oldest id out of a list that is not empty."""
    id = q.after[len(q.where) + at]
    take(q, id)
    return id
