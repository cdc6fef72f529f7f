"""Sequence: the ids a trace touches, one after another, for flat caches and stack distances.

An id is a page or a region. The order is that of the trace: launch by launch, block by block.
Slots, batches and prefetch belong to the mechanism, not here.
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
MOST_TOUCHES = 2**31 - 2  # times of touches are int32


@dataclass(frozen=True)
class Sequence:
    """The flat sequence of ``trace``: an iterable of chunks of ids, a segment each."""

    trace: Trace
    unit: Unit = "region"

    def __post_init__(self) -> None:
        if self.unit not in ("page", "region"):
            raise TidegateError(f"unit must be page or region, got '{self.unit}'")
        if not self.trace.objects:
            raise empty(self.trace)

    @property
    def bound(self) -> int:
        """Ids are below this number."""
        return self.trace.regions if self.unit == "region" else self.trace.pages

    @property
    def unit_bytes(self) -> int:
        """The size of a page or region."""
        geometry = self.trace.geometry
        return geometry.region if self.unit == "region" else geometry.page

    def __iter__(self) -> Iterator[Ids]:
        pages, per_region = self.trace.pages, self.trace.geometry.pages_per_region
        shift = per_region.bit_length() - 1 if self.unit == "region" else 0
        for launch in self.trace.launches():
            for segment in launch.segments:
                if not segment.touches:
                    continue
                low, high = int(segment.page.min()), int(segment.page.max())
                if low < 0 or high >= pages:  # compiled code does not check indices
                    raise TidegateError(
                        f"trace {self.trace.name} touches page {low if low < 0 else high}, "
                        f"but has pages 0 to {pages - 1}; its objects are too small"
                    )
                yield segment.page >> shift if shift else segment.page

    def collapsed(self, progress: Callable[[int], None] = lambda touches: None) -> tuple[Ids, int]:
        """Return all ids in one array, runs of the same id as one, and the number of touches."""
        parts: list[Ids] = []
        touches, before = 0, -1
        for ids in self:
            parts.append(collapse(ids, before).copy())  # frees the rest of the chunk
            touches, before = touches + len(ids), int(ids[-1])
            progress(len(ids))
        if not touches:
            raise empty(self.trace)
        return np.concatenate(parts), touches


def empty(trace: Trace) -> TidegateError:
    """Return the error for a trace without touches."""
    return TidegateError(f"trace {trace.name} is empty: it touches nothing")


def collapse(ids: Ids, before: int = -1) -> Ids:
    """Return ``ids`` with runs of the same id as one. ``before`` is the id before the first.

    A repeat is a hit in every cache of one frame or more, and changes nothing in LRU, FIFO and
    Belady. In CLOCK it sets the referenced bit.

    >>> collapse(np.array([5, 5, 7, 7, 5], np.int32))
    array([5, 7, 5], dtype=int32)
    """
    kept = np.empty(len(ids), np.int32)
    return kept[: _collapse(ids, before, kept)]


def checked(ids: ArrayLike, capacity: int) -> tuple[Ids, int]:
    """Return ``ids`` for the compiled loops, and their bound. Raise an error if they are no ids, or
    if the capacity is not positive.
    """
    array = np.asarray(ids)
    if capacity < 1:
        raise TidegateError(f"capacity must be at least 1, got {capacity}")
    if len(array) > MOST_TOUCHES:
        raise TidegateError(f"ids must be at most {MOST_TOUCHES} touches, got {len(array)}")
    low, high = (int(array.min()), int(array.max())) if len(array) else (0, -1)
    if low < 0 or high >= 2**31 - 1:
        wrong = low if low < 0 else high
        raise TidegateError(f"ids must be at least 0 and below 2**31 - 1, got {wrong}")
    return np.ascontiguousarray(array, np.int32), high + 1


@jit
def _collapse(ids: Any, before: int, kept: Any) -> int:
    k = np.uint64(0)
    for i in range(len(ids)):
        # always written, kept only if the next write goes elsewhere: no branch to predict
        kept[k] = ids[i]
        k += np.uint64(ids[i] != before)
        before = ids[i]
    return int(k)
