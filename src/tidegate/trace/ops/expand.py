"""From operands to touches of pages.

Each operand of a launch is swept once from its first to its last page, all operands of a group in
step: after a tenth of one, a tenth of every other. Gathered rows are on pages drawn by a hash, the
same ones every time, because a recording without values does not have the indices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.sweeps import merge_sweeps
from tidegate.trace.build import SEGMENT_TOUCHES
from tidegate.trace.trace import Segment

BLOCK_TOUCHES = 4  # of one block: a few pages, so that a large launch has blocks for every slot
_ALL = 8  # this many rows for each page use all pages, but for one in three thousand


class OperandSweep:
    """The operands of one launch, as addresses in bytes, sorted by group."""

    def __init__(
        self, low: Any, high: Any, used: Any, write: Any, row: Any, stride: Any, group: Any
    ):
        self.low, self.high, self.used = low, high, used
        self.write, self.row, self.stride, self.group = write, row, stride, group

    def segments(self, page: int, seed: int) -> Iterator[Segment]:
        """Yield the touches, about a million at a time. ``seed`` draws the gathered rows."""
        first = self.low // page
        count = (self.high - 1) // page - first + 1
        pool, start = np.zeros(0, np.int64), np.full(len(first), -1, np.int64)
        if self.row.any():
            pool = self._pages_of_rows(page, seed, first, count, start)
        done, cursor = np.zeros(len(first), np.int64), np.zeros(1, np.int64)
        given = (self.low, self.high, self.used, self.write, self.group)
        left = int(count.sum())
        while left:
            n = min(left, SEGMENT_TOUCHES)
            left -= n
            kinds = (np.int32, np.uint8, np.int32, np.int16)
            out: tuple[Any, ...] = tuple(np.empty(n, kind) for kind in kinds)
            merge_sweeps(given, count, first, pool, start, done, cursor, page, out)
            yield Segment(np.append(np.arange(0, n, BLOCK_TOUCHES, dtype=np.int64), n), *out)

    def _pages_of_rows(
        self, page: int, seed: int, first: Any, count: Any, start: Any
    ) -> NDArray[np.int64]:
        """Return the pages of operands that are used in rows, unless that is all their pages.

        Set ``start`` to where each operand's pages begin, and ``count`` to how many there are.
        """
        parts, at = [np.zeros(0, np.int64)], 0
        for i in np.flatnonzero(self.row).tolist():
            row, stride, used = int(self.row[i]), int(self.stride[i]), int(self.used[i])
            rows = max(1, used // row)
            if stride == 0 and rows < _ALL * count[i]:
                pages = first[i] + np.unique(_draw(rows, int(count[i]), seed, i))
            elif stride - row >= page:
                pages = _strided(int(self.low[i]), int(self.high[i]), row, stride, page)
            else:
                continue
            parts.append(pages)
            start[i], count[i] = at, len(pages)
            at += len(pages)
        return np.concatenate(parts)


def _strided(low: int, high: int, row: int, stride: int, page: int) -> NDArray[np.int64]:
    """Return the pages of rows that are a page or more apart."""
    begins = np.arange(low, high, stride, dtype=np.int64)
    first = begins // page
    count = (np.minimum(begins + row, high) - 1) // page - first + 1
    within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    return np.repeat(first, count) + within


def _draw(n: int, below: int, seed: int, operand: int) -> NDArray[np.int64]:
    """Return n numbers below a bound by SplitMix64, the same ones for the same seed and operand."""
    with np.errstate(over="ignore"):
        z = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64((seed << 20 ^ operand) & 0xFFFFFFFFFFFFFFFF)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return ((z ^ (z >> np.uint64(31))) % np.uint64(below)).astype(np.int64)
