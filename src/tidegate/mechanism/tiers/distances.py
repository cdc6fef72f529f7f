"""Sampled pairs: the virtual time since a page's last touch, and how many other pages were touched meanwhile.

Reuse distances are counted with a tree of partial sums over marks, one at each page's latest touch (Bennett & Kruskal, IBM
Journal of Research and Development 19(4), 1975). When the places for marks are used up, marks are moved together.
"""

from __future__ import annotations

from typing import Any

from tidegate.jit import jit_bare
from tidegate.mechanism.tiers.state import EVERY, FILLED, MARKS, NEXT, WANTED


@jit_bare
def measure(m: Any, page: int, now: int) -> bool:
    """Take note of a touch; True if the batch of pairs has become full."""
    s = m.sampling
    full = False
    if m.place[page]:
        if page % s[EVERY] == 0:
            m.pairs[2 * s[FILLED]] = now - m.last[page]
            m.pairs[2 * s[FILLED] + 1] = s[MARKS] - _sum(m.tree, m.place[page])
            s[FILLED] += 1
            s[WANTED] -= 1
            full = 2 * s[FILLED] == len(m.pairs) or s[WANTED] == 0
        _add(m.tree, m.place[page], -1)
        s[MARKS] -= 1
    if s[NEXT] == len(m.tree) - 1:
        _move_together(m)
    s[NEXT] += 1
    m.place[page] = s[NEXT]
    _add(m.tree, s[NEXT], 1)
    s[MARKS] += 1
    return full


@jit_bare
def _move_together(m: Any) -> None:
    """Give each mark the number of marks up to it; those places behind are free again."""
    for page in range(len(m.place)):
        if m.place[page]:
            m.place[page] = _sum(m.tree, m.place[page])
    m.tree[:] = 0
    m.sampling[NEXT] = m.sampling[MARKS]
    for at in range(1, m.sampling[MARKS] + 1):
        m.tree[at] += 1
        up = at + (at & -at)
        if up < len(m.tree):
            m.tree[up] += m.tree[at]
    for at in range(m.sampling[MARKS] + 1, len(m.tree)):  # sums that reach back over the marks
        up = at + (at & -at)
        if up < len(m.tree):
            m.tree[up] += m.tree[at]


@jit_bare
def _add(tree: Any, at: int, change: int) -> None:
    while at < len(tree):
        tree[at] += change
        at += at & -at


@jit_bare
def _sum(tree: Any, at: int) -> int:
    total = 0
    while at > 0:
        total += tree[at]
        at -= at & -at
    return total
