"""What a recording keeps of a run: regions that come and leave, and the books in each bin of time.

Without a recording nothing happens.
"""

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
    mark_row,
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


_MARKS = """
    time touches faults batches evictions pages_in pages_written_back pages_prefetched pages_unused
    remote_bytes frames_used running fault_handling transfer_in transfer_out policy_overhead
    link_in_time link_out_time
"""
MARKS = tuple(_MARKS.split())


@jit_bare
def mark(memory: Any) -> None:
    """Copy the current books into the current bin of the recording."""
    books = memory.books[0]
    row = mark_row(memory, books.touches)
    if row < 0:
        return
    to = memory.marks[row]
    to[0], to[1], to[2], to[3] = books.front, books.touches, books.faults, books.batches
    to[4], to[5], to[6] = books.evictions, books.pages_in, books.pages_written_back
    to[7], to[8], to[9] = books.pages_prefetched, books.pages_unused, books.remote_bytes
    to[10], to[11], to[12] = books.frames_used, books.running, books.fault_handling
    to[13], to[14], to[15] = books.transfer_in, books.transfer_out, books.policy_overhead
    to[16], to[17] = books.link_in_time, books.link_out_time
