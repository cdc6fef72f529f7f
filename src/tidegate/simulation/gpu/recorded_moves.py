"""Regions that come and leave, in a recording; without one nothing happens."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.jit import jit_bare
from tidegate.simulation.recording import (
    AT_DEATH,
    CAME,
    EVICTIONS,
    LEFT,
    PREFETCHED,
    RESIDENCY,
    UNUSED,
    note,
    tell,
)


@jit_bare
def record_came(memory: Any, region: int, pages: int, prefetched: int, why: int) -> None:
    """Record that pages of a region came near, some of them without a fault."""
    books = memory.books[0]
    if memory.recorder[0].rows == 0:
        return
    note(memory, RESIDENCY, books.touches, region, pages)
    note(memory, PREFETCHED, books.touches, region, prefetched)
    tell(memory, books.front, books.touches, region, CAME, np.int64(why), pages)


@jit_bare
def record_left(memory: Any, region: int, pages: int, untouched: int, why: int) -> None:
    """Record that a whole region was evicted, with so many near pages, some of them untouched."""
    books = memory.books[0]
    if memory.recorder[0].rows == 0:
        return
    gone = np.int64(memory.resident[region])
    note(memory, EVICTIONS, books.touches, region, 1)
    note(memory, RESIDENCY, books.touches, region, -gone)
    note(memory, UNUSED, books.touches, region, untouched)
    tell(memory, books.front, books.touches, region, LEFT, why, pages)


@jit_bare
def record_died(memory: Any, region: int, pages: int) -> None:
    """Record that data died near: their pages are gone without an eviction."""
    books = memory.books[0]
    if memory.recorder[0].rows == 0:
        return
    note(memory, RESIDENCY, books.touches, region, -pages)
    tell(memory, books.front, books.touches, region, LEFT, AT_DEATH, pages)
