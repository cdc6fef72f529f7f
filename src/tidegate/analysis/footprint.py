"""Footprint: distinct ids and bytes touched over time."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from tidegate.analysis.sequence import Ids
from tidegate.compiled.jit import jit

POINTS = 512


class Footprint:
    """Distinct ids after a number of touches, at no more than 512 points.

    Points are equally far apart. If there are too many, every second one is dropped.
    """

    def __init__(self, bound: int):
        self.touches = 0
        self.distinct = 0
        self._seen = np.zeros(bound, np.uint8)
        self._apart = 1
        self._points: list[int] = []

    def update(self, ids: Ids) -> None:
        """Add touches. Ids must be below the bound."""
        done = 0
        while done < len(ids):
            take = min(len(ids) - done, self._apart - self.touches % self._apart)
            self.distinct += _first_touches(ids[done : done + take], self._seen)
            self.touches, done = self.touches + take, done + take
            if self.touches % self._apart == 0:
                self._points.append(self.distinct)
            if len(self._points) == POINTS:
                self._points = self._points[1::2]
                self._apart *= 2

    def table(self, unit_bytes: int) -> pl.DataFrame:
        """Return the columns ``touches``, ``distinct``, ``bytes``; the last row is the total."""
        touches = [self._apart * (i + 1) for i in range(len(self._points))]
        distinct = list(self._points)
        if self.touches % self._apart:
            touches.append(self.touches)
            distinct.append(self.distinct)
        return pl.DataFrame({"touches": touches, "distinct": distinct}).with_columns(
            (pl.col("distinct") * unit_bytes).alias("bytes")
        )


@jit
def _first_touches(ids: Any, seen: Any) -> int:
    first = 0
    for i in range(len(ids)):
        id = np.uint64(ids[i])
        first += 1 - seen[id]
        seen[id] = 1
    return first
