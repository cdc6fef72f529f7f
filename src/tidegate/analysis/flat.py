"""Flat LRU, FIFO and CLOCK: only the misses of one id sequence at one capacity.

Equal, miss for miss, to libCacheSim's LRU, FIFO and Clock. Quick answers, and oracles for the
mechanism's policies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tidegate.analysis.sequence import checked
from tidegate.compiled.jit import jit


def lru_misses(ids: ArrayLike, capacity: int) -> int:
    """Return the misses if the id used longest ago leaves.

    >>> lru_misses([0, 1, 2, 0], capacity=2)
    4
    """
    array, bound = checked(ids, capacity)
    return int(_lru(array, capacity, np.full(bound, -1, np.int32)))


def fifo_misses(ids: ArrayLike, capacity: int) -> int:
    """Return the misses if the id brought in longest ago leaves.

    >>> fifo_misses([0, 1, 0, 2, 0], capacity=2)
    4
    """
    array, bound = checked(ids, capacity)
    capacity = min(capacity, bound)
    return int(_fifo(array, capacity, np.full(bound, -capacity - 1, np.int32)))


def clock_misses(ids: ArrayLike, capacity: int) -> int:
    """Return the misses of CLOCK (Corbató, 1968): FIFO with a second chance for ids used since the
    hand last passed.

    An id is brought in with its bit clear, and a hit sets it. The hand clears bits until it finds a
    clear one. That id leaves, and the new one takes its place just behind the hand.

    >>> clock_misses([0, 1, 0, 2, 0], capacity=2)
    3
    """
    array, bound = checked(ids, capacity)
    return int(_clock(array, np.zeros(bound, np.uint8), np.zeros(min(capacity, bound), np.int32)))


@jit
def _lru(ids: Any, capacity: int, last: Any) -> int:
    """Count misses. The sequence is its own LRU list: the victim is at the first position that is
    still its id's last touch.

    ``oldest`` only moves forward; ids last touched before it have left.
    """
    misses, oldest = 0, 0
    for i in range(len(ids)):
        id = np.uint64(ids[i])
        if last[id] < oldest:
            misses += 1
            if misses > capacity:
                while last[np.uint64(ids[np.uint64(oldest)])] != oldest:
                    oldest += 1
                oldest += 1
        last[id] = i
    return misses


@jit
def _fifo(ids: Any, capacity: int, brought_in: Any) -> int:
    """Count misses. A miss evicts the id brought in ``capacity`` misses before, so that an id's
    miss number shows whether it is resident.
    """
    misses = 0
    for i in range(len(ids)):
        id = np.uint64(ids[i])
        if brought_in[id] < misses - capacity:
            brought_in[id] = misses
            misses += 1
    return misses


@jit
def _clock(ids: Any, state: Any, ring: Any) -> int:
    absent, resident, referenced = np.uint8(0), np.uint8(1), np.uint8(2)
    misses, hand = 0, 0
    for i in range(len(ids)):
        id = np.uint64(ids[i])
        if state[id] != absent:
            state[id] = referenced
            continue
        misses += 1
        if misses > len(ring):
            while state[np.uint64(ring[hand])] == referenced:
                state[np.uint64(ring[hand])] = resident
                hand = hand + 1 if hand + 1 < len(ring) else 0
            state[np.uint64(ring[hand])] = absent
        state[id] = resident
        ring[hand] = id
        hand = hand + 1 if hand + 1 < len(ring) else 0
    return misses
