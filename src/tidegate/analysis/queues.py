"""Queues: several lists of ids, each id in at most one of them, for flat caches with ghosts.

A list is a ring through a node of its own, whose number follows those of the ids. The oldest id
comes after this node, the youngest before it.
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
