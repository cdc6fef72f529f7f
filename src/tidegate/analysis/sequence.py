"""Sequence: the ids a trace touches, one after another, as flat caches and stack distances see
them.

An id is a page or a region. The order is the order in which the trace is written: launch by launch,
block by block. Slots, batches and prefetch play no part here; they belong to the mechanism.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidegate.compiled.jit import jit
from tidegate.errors import TidegateError
from tidegate.trace import Trace

Unit = Literal["page", "region"]
Ids = NDArray[np.int32]
MOST_TOUCHES = 2**31 - 2  # the times at which ids are touched are kept as int32


@dataclass(frozen=True)
class Sequence:
    """The flat sequence of ``trace``: iterating gives chunks of ids, a segment each, and may be
    repeated.
    """

    trace: Trace
    unit: Unit = "region"

    def __post_init__(self) -> None:
        if self.unit not in ("page", "region"):
            raise TidegateError(f"unknown unit '{self.unit}'; expected page or region")
        if not self.trace.objects:
            raise empty(self.trace)

    @property
    def bound(self) -> int:
        """Ids run from 0 to here."""
        return self.trace.regions if self.unit == "region" else self.trace.pages

    @property
    def unit_bytes(self) -> int:
        """The size of what one id stands for."""
        geometry = self.trace.geometry
        return geometry.region if self.unit == "region" else geometry.page

    def __iter__(self) -> Iterator[Ids]:
        pages = self.trace.pages
        shift = (
            self.trace.geometry.pages_per_region.bit_length() - 1 if self.unit == "region" else 0
        )
        for launch in self.trace.launches():
            for segment in launch.segments:
                if not segment.touches:
                    continue
                low, high = int(segment.page.min()), int(segment.page.max())
                if low < 0 or high >= pages:  # compiled code does not look where it writes
                    raise TidegateError(
                        f"trace {self.trace.name} touches page {low if low < 0 else high}, but has pages 0 to"
                        f" {pages - 1}; its objects are too small"
                    )
                yield segment.page >> shift if shift else segment.page

    def collapsed(self, progress: Callable[[int], None] = lambda touches: None) -> tuple[Ids, int]:
        """All ids in one array, runs of the same id given once; and how many touches there were."""
        parts: list[Ids] = []
        touches, before = 0, -1
        for ids in self:
            parts.append(collapse(ids, before).copy())  # not the room of a whole chunk
            touches, before = touches + len(ids), int(ids[-1])
            progress(len(ids))
        if not touches:
            raise empty(self.trace)
        return np.concatenate(parts), touches


def empty(trace: Trace) -> TidegateError:
    return TidegateError(f"trace {trace.name} is empty: it touches nothing")


def collapse(ids: Ids, before: int = -1) -> Ids:
    """``ids`` with runs of the same id given once. ``before`` is the id touched before the first.

    A repeat is a hit in every cache of one frame or more, and LRU, FIFO and Belady do not notice
    it. CLOCK does: a repeat sets the referenced bit.

    >>> collapse(np.array([5, 5, 7, 7, 5], np.int32))
    array([5, 7, 5], dtype=int32)
    """
    kept = np.empty(len(ids), np.int32)
    return kept[: _collapse(ids, before, kept)]


def checked(ids: ArrayLike, capacity: int) -> tuple[Ids, int]:
    """``ids`` as the compiled loops want them, and their bound, after making sure that they can be
    ids.
    """
    array = np.asarray(ids)
    if capacity < 1:
        raise TidegateError(f"a capacity of {capacity} holds nothing; give at least 1")
    if len(array) > MOST_TOUCHES:
        raise TidegateError(
            f"{len(array)} touches are too many to hold at once; give at most {MOST_TOUCHES}"
        )
    low, high = (int(array.min()), int(array.max())) if len(array) else (0, -1)
    if low < 0 or high >= 2**31 - 1:
        raise TidegateError(
            f"{low if low < 0 else high} is not an id; ids count from 0 and fit 31 bits"
        )
    return np.ascontiguousarray(array, np.int32), high + 1


@jit
def _collapse(ids: Any, before: int, kept: Any) -> int:
    k = np.uint64(0)
    for i in range(len(ids)):
        # written always, kept only if the next write goes elsewhere: no branch to guess
        kept[k] = ids[i]
        k += np.uint64(ids[i] != before)
        before = ids[i]
    return int(k)
