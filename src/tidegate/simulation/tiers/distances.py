"""Sampled pairs: the virtual time since a page's last touch, and how many other pages were touched
meanwhile.

Reuse distances are counted by marks, one at each page's latest touch (Bennett & Kruskal, IBM
Journal of Research and Development 19(4), 1975): bits, 64 to a word, and a tree of partial sums
over the words. When the places for marks are used up, marks are moved together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.bits import popcount
from tidegate.compiled.fenwick import add, build, sum_to
from tidegate.compiled.jit import jit_bare

_ALL, _ONE = ~np.uint64(0), np.uint64(1)


@jit_bare
def measure(memory: Any, page: int, now: int) -> bool:
    """Record a touch; return whether the batch of pairs has become full."""
    sampling = memory.sampling[0]
    full = False
    if memory.place[page]:
        if page % sampling.every == 0:
            pair = 2 * sampling.filled
            memory.pairs[pair] = now - memory.last[page]
            memory.pairs[pair + 1] = sampling.marks - _marks_to(memory, memory.place[page])
            sampling.filled += 1
            sampling.wanted -= 1
            full = 2 * sampling.filled == len(memory.pairs) or sampling.wanted == 0
        _mark(memory, memory.place[page], -1)
    if sampling.next_place == 64 * len(memory.latest):
        _move_together(memory)
    sampling.next_place += 1
    memory.place[page] = sampling.next_place
    _mark(memory, sampling.next_place, 1)
    return full


@jit_bare
def _mark(memory: Any, place: int, change: int) -> None:
    """Set the mark of a place (1), or remove it (-1)."""
    word, bit = place - 1 >> 6, np.uint64(place - 1 & 63)
    memory.latest[word] ^= _ONE << bit
    add(memory.tree, word + 1, change)
    memory.sampling[0].marks += change


@jit_bare
def _marks_to(memory: Any, place: int) -> int:
    """Return how many marks there are up to this place."""
    word, bit = place - 1 >> 6, np.uint64(place - 1 & 63)
    within = popcount(memory.latest[word] & _ALL >> np.uint64(63) - bit)
    return sum_to(memory.tree, word) + np.int64(within)


@jit_bare
def _move_together(memory: Any) -> None:
    """Give each mark the number of marks up to it; the places behind are free again."""
    sampling = memory.sampling[0]
    for page in range(len(memory.place)):
        if memory.place[page]:
            memory.place[page] = _marks_to(memory, memory.place[page])
    for word in range(len(memory.latest)):
        there = min(max(sampling.marks - 64 * word, 0), 64)
        memory.latest[word] = _ALL >> np.uint64(64 - there) if there else np.uint64(0)
        memory.tree[word + 1] = there
    build(memory.tree)
    sampling.next_place = sampling.marks
