"""Pages that come near, leave, and pass through the middle, in a recording; without one nothing
happens.

    record_came     a page came near                  record_touches  what a walk has touched
    record_left     it left near memory               mark            the books of now
    record_middle   it entered or left the middle     recorded_books  what layers must add up to
    record_spill    it made room in the middle
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.jit import jit, jit_bare, jit_within
from tidegate.simulation.recording import (
    CAME,
    EVICTIONS,
    FAR_READS,
    FAULTS,
    FROM_FAR,
    FROM_MIDDLE,
    LEFT,
    MIDDLE,
    RESIDENCY,
    SPILLED,
    SPILLS,
    TO_FAR,
    TO_MIDDLE,
    TOUCHES,
    fit,
    mark_row,
    note,
    tell,
)
from tidegate.simulation.tiers.state import IN_MIDDLE
from tidegate.simulation.tiers.timeline import COLUMNS

MARKS = ("time", *COLUMNS, "read_busy", "write_busy")


@jit
def record_touches(memory: Any, pages: Any, first: int) -> None:
    """Count touches by page and bin; the first of them is touch ``first`` of the run."""
    r = memory.recorder[0]
    fit(memory, first + len(pages) - 1)
    for i in range(len(pages)):
        row = np.uint64(first + i - r.first_touch) >> np.uint64(r.shift)
        cell = np.uint64(pages[i] - r.first_region) >> np.uint64(r.cell_shift)
        if row < np.uint64(r.rows) and cell < np.uint64(r.cells):
            memory.recorded[TOUCHES, row, cell] += 1


@jit
def mark(memory: Any) -> None:
    """Copy the current books into the current bin of the recording."""
    _mark(memory)


@jit_bare
def _mark(memory: Any) -> None:
    counts = memory.counts[0]
    row = mark_row(memory, counts.touches)
    if row < 0:
        return
    to = memory.marks[row]
    to[0], to[1], to[2] = memory.clock[0].now, counts.touches, counts.hits
    to[3], to[4], to[5] = counts.middle_hits, counts.far_reads, counts.evictions
    to[6], to[7], to[8] = counts.to_middle, counts.dropped, counts.near_written
    to[9], to[10], to[11] = counts.middle_written, counts.near_flushed, counts.middle_flushed
    to[12], to[13] = counts.near_used, counts.middle_used
    to[14], to[15] = memory.clock[0].read_busy, memory.clock[0].write_busy


@jit_within
def record_came(memory: Any, page: int, far: bool) -> None:
    """Record that a page came near, from the far tier or the middle."""
    if memory.recorder[0].rows == 0:
        return
    touch = memory.counts[0].touches - 1
    note(memory, FAULTS, touch, page, 1)
    note(memory, RESIDENCY, touch, page, 1)
    if far:
        note(memory, FAR_READS, touch, page, 1)
    why = np.int64(FROM_FAR if far else FROM_MIDDLE)
    tell(memory, memory.clock[0].now, touch, page, CAME, why, 1)
    _mark(memory)


@jit_within
def record_left(memory: Any, page: int, far: bool) -> None:
    """Record that a page left near memory, for the far tier or the middle."""
    if memory.recorder[0].rows == 0:
        return
    touch = memory.counts[0].touches - 1
    note(memory, EVICTIONS, touch, page, 1)
    note(memory, RESIDENCY, touch, page, -1)
    why = np.int64(TO_FAR if far else TO_MIDDLE)
    tell(memory, memory.clock[0].now, touch, page, LEFT, why, 1)


@jit_within
def record_middle(memory: Any, page: int, change: int) -> None:
    """Record that a page entered the middle (1) or left it (-1)."""
    if memory.recorder[0].rows == 0:
        return
    note(memory, MIDDLE, memory.counts[0].touches - 1, page, np.int64(change))


@jit_within
def record_spill(memory: Any, page: int) -> None:
    """Record that a page of the middle made room for another."""
    if memory.recorder[0].rows == 0:
        return
    touch = memory.counts[0].touches - 1
    note(memory, SPILLS, touch, page, 1)
    now = memory.clock[0].now
    tell(memory, now, touch, page, SPILLED, TO_FAR, 1)


def recorded_books(memory: Any, counts: dict[str, int]) -> dict[str, Any]:
    """Return what the layers of a recording must add up to: by page, or in all."""
    middle = memory.where <= IN_MIDDLE
    if len(memory.copies):
        middle |= memory.copies >= 0
    return {
        "touches": counts["touches"],
        "faults": counts["middle_hits"] + counts["far_reads"],
        "evictions": counts["evictions"],
        "far_reads": counts["far_reads"],
        "spills": counts["middle_spilled"],
        "residency": memory.where >= 0,
        "middle": middle,
    }
