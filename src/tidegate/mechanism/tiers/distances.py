"""Sampled pairs: the virtual time since a page's last touch, and how many other pages were touched meanwhile.

Reuse distances are counted with a tree of partial sums over marks, one at each page's latest touch (Bennett & Kruskal, IBM
Journal of Research and Development 19(4), 1975). When the places for marks are used up, marks are moved together.
"""

from __future__ import annotations

from typing import Any

from tidegate.jit import jit_bare
from tidegate.mechanism.tiers.state import EVERY, FILLED, MARKS, NEXT, WANTED
from tidegate.sums import add, fill, sum_to


@jit_bare
def measure(m: Any, page: int, now: int) -> bool:
    """Take note of a touch; True if the batch of pairs has become full."""
    s = m.sampling
    full = False
    if m.place[page]:
        if page % s[EVERY] == 0:
            m.pairs[2 * s[FILLED]] = now - m.last[page]
            m.pairs[2 * s[FILLED] + 1] = s[MARKS] - sum_to(m.tree, m.place[page])
            s[FILLED] += 1
            s[WANTED] -= 1
            full = 2 * s[FILLED] == len(m.pairs) or s[WANTED] == 0
        add(m.tree, m.place[page], -1)
        s[MARKS] -= 1
    if s[NEXT] == len(m.tree) - 1:
        _move_together(m)
    s[NEXT] += 1
    m.place[page] = s[NEXT]
    add(m.tree, s[NEXT], 1)
    s[MARKS] += 1
    return full


@jit_bare
def _move_together(m: Any) -> None:
    """Give each mark the number of marks up to it; those places behind are free again."""
    for page in range(len(m.place)):
        if m.place[page]:
            m.place[page] = sum_to(m.tree, m.place[page])
    fill(m.tree, m.sampling[MARKS])
    m.sampling[NEXT] = m.sampling[MARKS]
