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
from tidegate.simulation.tiers.state import EVERY, FILLED, MARKS, NEXT, WANTED

_ALL, _ONE = ~np.uint64(0), np.uint64(1)


@jit_bare
def measure(m: Any, page: int, now: int) -> bool:
    """Take note of a touch; True if the batch of pairs has become full."""
    s = m.sampling
    full = False
    if m.place[page]:
        if page % s[EVERY] == 0:
            m.pairs[2 * s[FILLED]] = now - m.last[page]
            m.pairs[2 * s[FILLED] + 1] = s[MARKS] - _marks_to(m, m.place[page])
            s[FILLED] += 1
            s[WANTED] -= 1
            full = 2 * s[FILLED] == len(m.pairs) or s[WANTED] == 0
        _mark(m, m.place[page], -1)
    if s[NEXT] == 64 * len(m.marks):
        _move_together(m)
    s[NEXT] += 1
    m.place[page] = s[NEXT]
    _mark(m, s[NEXT], 1)
    return full


@jit_bare
def _mark(m: Any, place: int, change: int) -> None:
    """Set the mark of a place (1), or take it away (-1)."""
    word, bit = place - 1 >> 6, np.uint64(place - 1 & 63)
    m.marks[word] ^= _ONE << bit
    add(m.tree, word + 1, change)
    m.sampling[MARKS] += change


@jit_bare
def _marks_to(m: Any, place: int) -> int:
    """How many marks there are up to this place."""
    word, bit = place - 1 >> 6, np.uint64(place - 1 & 63)
    return sum_to(m.tree, word) + np.int64(popcount(m.marks[word] & _ALL >> np.uint64(63) - bit))


@jit_bare
def _move_together(m: Any) -> None:
    """Give each mark the number of marks up to it; those places behind are free again."""
    for page in range(len(m.place)):
        if m.place[page]:
            m.place[page] = _marks_to(m, m.place[page])
    for word in range(len(m.marks)):
        there = min(max(m.sampling[MARKS] - 64 * word, 0), 64)
        m.marks[word] = _ALL >> np.uint64(64 - there) if there else np.uint64(0)
        m.tree[word + 1] = there
    build(m.tree)
    m.sampling[NEXT] = m.sampling[MARKS]
