"""Reuse distances: how many other ids are touched between one touch of an id and the next.

The stack distance of Mattson et al. (IBM Systems Journal 9(2), 1970): a touch hits in an LRU cache
of C frames exactly if its distance is less than C, so that one pass answers every capacity.
Distances are counted as by Bennett & Kruskal (IBM Journal of Research and Development 19(4), 1975):
an id's last touch is a mark in a row of time slots, and the distance is the number of marks after
it, found with a tree of partial sums.

Here marks are bits, 64 to a word, and 64 words or sums share a node. All slots are marked at first,
future ones included: they lie after every mark that is looked up, so that a touch only removes a
mark. When the slots are used up, the marks are moved together at the front. With four slots per id
that happens at most once per three touches of each id, and memory depends on the ids, not on the
length of the trace.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tidegate.analysis.sequence import Ids
from tidegate.compiled.bits import popcount
from tidegate.compiled.jit import jit, jit_inline

SLOTS_PER_ID = 4
FEWEST_SLOTS = 1 << 12  # so that marks of few ids are not moved all the time
FANOUT = 64  # few levels, and few vector instructions per node

_ALL, _ONE, _SIX, _LOW = ~np.uint64(0), np.uint64(1), np.uint64(6), np.uint64(63)
# in state: the slot of the next touch, the number of marks before it, the id touched before
_NOW, _MARKED, _BEFORE = range(3)


class ReuseDistances:
    """Exact LRU reuse distances of the ids so far, which may come in any chunks.

    ``counts[d]`` is the number of touches at distance ``d``; ``cold`` the number of first touches.

    >>> reuse = ReuseDistances(bound=3)
    >>> reuse.update(np.array([0, 1, 2, 2, 0], np.int32))
    >>> reuse.counts.tolist(), reuse.cold
    ([1, 0, 1], 3)
    """

    def __init__(self, bound: int):
        words = -(-max(SLOTS_PER_ID * bound, FEWEST_SLOTS) // 64)
        self.counts: NDArray[np.int64] = np.zeros(bound, np.int64)
        self.touches = 0
        self._last = np.full(bound, -1, np.int32)
        self._marks = np.full(words, _ALL)
        self._all_marked, self._levels = _sums_of_full(words)
        self._sums = self._all_marked.copy()
        self._state = np.array([0, 0, -1], np.int64)

    def update(self, ids: Ids) -> None:
        """Add touches. Ids must be below the bound."""
        done, tree = 0, (self._marks, self._sums, self._levels)
        while done < len(ids):
            done += _touch(ids[done:], self.counts, self._state, self._last, *tree)
            if self._state[_NOW] == 64 * len(self._marks):
                self._move_together()
        self.touches += len(ids)

    @property
    def cold(self) -> int:
        """The number of first touches, which miss at every capacity, and of distinct ids."""
        return int(self._state[_MARKED])

    @property
    def farthest(self) -> int:
        """The greatest distance so far; 0 if nothing was touched twice."""
        found = np.flatnonzero(self.counts)
        return int(found[-1]) if len(found) else 0

    def _move_together(self) -> None:
        """Renumber the marks 0, 1, 2 … in their order; all slots after them are free again."""
        _renumber(self._last, self._marks, self._sums, self._levels)
        self._marks[:] = _ALL
        self._sums[:] = self._all_marked
        self._state[_NOW] = self._state[_MARKED]


def _sums_of_full(words: int) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """Return the tree of full words, and where each of its levels begins.

    A sum is the number of marks before its word (on higher levels: its node) within their common
    node.
    """
    parts: list[NDArray[Any]] = []
    starts, marks, nodes = [0], 64, words
    while nodes > 1 or not parts:
        nodes = -(-nodes // FANOUT)
        parts.append(np.tile(np.arange(FANOUT) * marks, nodes))
        starts.append(starts[-1] + nodes * FANOUT)
        marks *= FANOUT
    return np.concatenate(parts).astype(np.int32), np.array(starts[:-1], np.uint64)


@jit
def _touch(ids: Any, counts: Any, state: Any, last: Any, marks: Any, sums: Any, levels: Any) -> int:
    """Count ids until they or the slots are used up. Return how many were counted."""
    now, marked, before = state[_NOW], state[_MARKED], state[_BEFORE]
    slots = 64 * len(marks)
    repeats, i = 0, 0
    while i < len(ids) and now < slots:
        id = ids[i]
        i += 1
        if id == before:
            repeats += 1
            continue
        before = id
        if last[np.uint64(id)] < 0:
            marked += 1
        else:
            upto = _unmark(np.uint64(last[np.uint64(id)]), marks, sums, levels)
            counts[np.uint64(marked - upto)] += 1
        last[np.uint64(id)] = now
        now += 1
    counts[0] += repeats
    state[_NOW], state[_MARKED], state[_BEFORE] = now, marked, before
    return i


@jit_inline
def _unmark(slot: Any, marks: Any, sums: Any, levels: Any) -> Any:
    """Remove a mark. Return how many slots were marked up to and including it."""
    at, bit = slot >> _SIX, _ONE << (slot & _LOW)
    total = np.int64(popcount(marks[at] & (bit | (bit - _ONE))))
    marks[at] &= ~bit
    for level in range(len(levels)):
        total += sums[levels[level] + at]
        node, place = levels[level] + (at & ~_LOW), np.int32(at & _LOW)
        # a loop over all becomes vector instructions without a branch
        for i in range(FANOUT):
            sums[node + np.uint64(i)] -= np.int32(i) > place
        at >>= _SIX
    return total


@jit
def _renumber(last: Any, marks: Any, sums: Any, levels: Any) -> None:
    """Replace the slot of every id's mark by the number of marks before it."""
    for id in range(len(last)):
        if last[id] >= 0:
            at, below = np.uint64(last[id]) >> _SIX, (_ONE << (np.uint64(last[id]) & _LOW)) - _ONE
            total = np.int64(popcount(marks[at] & below))
            for level in range(len(levels)):
                total += sums[levels[level] + at]
                at >>= _SIX
            last[id] = total


def histogram(reuse: ReuseDistances, unit_bytes: int) -> pl.DataFrame:
    """Return one row per bucket, and a last row without bounds for first touches.

    ``at_least``, ``below``: distances in ids; ``bytes``: ``at_least`` in bytes; ``touches``;
    ``share`` of all touches.
    """
    counts = reuse.counts[: reuse.farthest + 1]
    edges = [0] + [1 << k for k in range(len(counts).bit_length() + 1)]
    at_least = [edge for edge in edges if edge < len(counts)]
    below = edges[1 : len(at_least) + 1]
    return pl.DataFrame(
        {
            "at_least": [*at_least, None],
            "below": [*below, None],
            "bytes": [*(edge * unit_bytes for edge in at_least), None],
            "touches": [*np.add.reduceat(counts, at_least).tolist(), reuse.cold],
        },
        schema={"at_least": pl.Int64, "below": pl.Int64, "bytes": pl.Int64, "touches": pl.Int64},
    ).with_columns((pl.col("touches") / reuse.touches).alias("share"))
