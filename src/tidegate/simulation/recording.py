"""Recording: what happened to every region over the run, in bins of touches, for those who ask.

    note     add to a layer, in the bin of now         faults, evictions, pages that came and left
    mark     keep the books as they are in this bin    time, parts of time, link use
    tell     add a line to one region's story          came by a fault, left as a victim
    fit      two bins become one when all are full     so a recording never grows

Bins hold equally many touches, not equal times: two runs of one trace then have the same bins, and
what they did at the same moment of the program can be compared. ``mark`` keeps each bin's time.

Without a recording all arrays are empty, ``rows`` is 0, and the hit path is compiled without it.
With one the hit path counts touches itself (``slots.sweep``), after ``fit`` has made sure that
there is a bin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit_bare, jit_within
from tidegate.errors import TidegateError

ROWS = 1024  # bins; a whole run uses at least half of them
MOST_CELLS = 8192  # with more regions than this, neighbours share a cell
NEVER = np.iinfo(np.int64).max
CELLS_PER_TOUCH = 16
MOST_LINES = 4096  # of a region's story

LAYERS = ("touches", "faults", "evictions", "prefetched", "unused", "residency")
TOUCHES, FAULTS, EVICTIONS, PREFETCHED, UNUSED, RESIDENCY = range(len(LAYERS))
# Over three tiers: pages read from the far tier, that left the middle for it, and in the middle.
TIER_LAYERS = ("touches", "faults", "evictions", "far_reads", "spills", "residency", "middle")
FAR_READS, SPILLS, MIDDLE = 3, 4, 6
HELD = ("residency", "middle")  # layers from RESIDENCY on: pages held, not events

# Lines of a story: what happened, and why.
CAME, LEFT, SPILLED = 1, 2, 3
BY_FAULT, BY_PREFETCH, BY_COPY, BY_SAMPLE = 1, 2, 3, 4  # why it came
AS_VICTIM, AS_ASKED, AS_COPY, AT_DEATH = 5, 6, 7, 8  # why it left
FROM_MIDDLE, FROM_FAR, TO_MIDDLE, TO_FAR = 9, 10, 11, 12  # from where and to where, three tiers
STORY_COLUMNS = ("time", "touch", "what", "why", "pages", "touches")

_FIELDS = "rows cells first_touch shift open first_region cell_shift story_region story_n"
RECORDER = np.dtype([(name, "i8") for name in _FIELDS.split()])


@dataclass(frozen=True)
class Window:
    """The part of a run to record: by default all touches and all regions."""

    first_touch: int = 0
    touches: int | None = None
    first_region: int = 0
    regions: int | None = None

    def __post_init__(self) -> None:
        for name, least in (
            ("first_touch", 0),
            ("touches", 1),
            ("first_region", 0),
            ("regions", 1),
        ):
            value = getattr(self, name)
            if value is not None and value < least:
                raise TidegateError(f"{name} must be at least {least}, got {value}")


class RecorderArrays(NamedTuple):
    """The arrays of a recording; they are part of a mechanism's memory."""

    recorder: NDArray[Any]  # one record
    recorded: NDArray[np.int32]  # layer × bin × cell, and a bin and a cell for all outside
    recorded_touches: NDArray[np.int32]  # its first layer, flat, for the hit path
    noted: NDArray[np.int64]  # layer × bin: how many times something was added
    marks: NDArray[np.float64]  # bin × column; the last row is of before the window
    story: NDArray[np.float64]


def make_recorder(
    window: Window | None, regions: int, columns: int, layers: int = len(LAYERS)
) -> RecorderArrays:
    """Return the arrays of a recording of this window, empty ones for None."""
    recorder = np.zeros(1, RECORDER)
    recorder["story_region"] = -1
    if window is None:
        nothing = np.zeros((layers, 0, 0), np.int32)
        marks, story = np.zeros((0, columns)), np.zeros((0, len(STORY_COLUMNS)))
        noted = np.zeros((layers, 0), np.int64)
        return RecorderArrays(recorder, nothing, nothing.ravel(), noted, marks, story)
    if window.first_region >= regions:
        raise TidegateError(
            f"first_region must be below {regions}, the regions of this trace, "
            f"got {window.first_region}"
        )
    wide = min(window.regions or regions, regions - window.first_region)
    cell_shift = max(0, (-(-wide // MOST_CELLS) - 1).bit_length())
    cells = (wide + (1 << cell_shift) - 1) >> cell_shift
    r = recorder[0]
    r["rows"], r["cells"], r["cell_shift"] = ROWS, cells, cell_shift
    r["first_touch"], r["first_region"] = window.first_touch, window.first_region
    r["open"] = window.touches is None
    if window.touches is None:
        # from the start a bin has a touch for a few cells: folding emptier ones takes longer than
        # all of a short run
        r["shift"] = max(0, (cells // CELLS_PER_TOUCH).bit_length() - 1)
    else:
        r["shift"] = max(0, (-(-window.touches // ROWS) - 1).bit_length())
    if window.regions == 1:
        r["story_region"] = window.first_region
    recorded = np.zeros((layers, ROWS + 1, cells + 1), np.int32)
    return RecorderArrays(
        recorder,
        recorded,
        recorded[TOUCHES].reshape(-1),
        np.zeros((layers, ROWS + 1), np.int64),
        np.full((ROWS + 1, columns), np.nan),
        np.zeros((MOST_LINES if window.regions == 1 else 0, len(STORY_COLUMNS))),
    )


@jit_bare
def fit(memory: Any, touch: int) -> None:
    """Make sure that this touch has a bin; where all are full, two become one."""
    r = memory.recorder[0]
    while r.open and touch - r.first_touch >= r.rows << r.shift:
        half, cells, marks = r.rows // 2, r.cells, memory.marks
        for layer in range(memory.recorded.shape[0]):
            for row in range(half):
                fold_rows(memory, layer, row, cells)
            for row in range(half, r.rows):
                if layer == TOUCHES or memory.noted[layer, row] > 0:
                    memory.recorded[layer, row] = 0
                    memory.noted[layer, row] = 0
        for row in range(half):
            later = 2 * row + 1
            kept = later if marks[later, 0] == marks[later, 0] else 2 * row  # not a NaN
            for column in range(marks.shape[1]):
                marks[row, column] = marks[kept, column]
        for row in range(half, r.rows):
            marks[row, 0] = np.nan
        r.shift += 1


@jit_bare
def fold_rows(memory: Any, layer: int, row: int, cells: int) -> None:
    """Replace a row of a layer by the sum of the two that become one; most are empty."""
    noted, early, late = memory.noted[layer], 2 * row, 2 * row + 1
    if layer != TOUCHES and noted[row] + noted[early] + noted[late] == 0:
        return
    into, one = memory.recorded[layer, row], memory.recorded[layer, early]
    other = memory.recorded[layer, late]
    for cell in range(cells):
        into[np.uint64(cell)] = one[np.uint64(cell)] + other[np.uint64(cell)]
    noted[row] = noted[early] + noted[late]


@jit_within
def bin_of(memory: Any, touch: int) -> Any:
    """Return where the touches of this bin begin in ``recorded_touches``, and where the bin ends.

    A touch outside the window is counted in the bin behind the last.
    """
    r = memory.recorder[0]
    row, end = r.rows, np.int64(NEVER)
    if touch < r.first_touch:
        end = r.first_touch
    elif touch - r.first_touch < r.rows << r.shift:
        row = (touch - r.first_touch) >> r.shift
        end = r.first_touch + ((row + 1) << r.shift)
    return np.uint64(row * (r.cells + 1)), end


@jit_within
def bin_number(memory: Any, touch: int) -> int:
    """Return the number of this touch's bin, as bins are now."""
    r = memory.recorder[0]
    return (touch - r.first_touch) >> r.shift


@jit_bare
def note(memory: Any, layer: int, touch: int, region: int, amount: int) -> None:
    """Add to a layer, for a region, in the bin of this touch."""
    r = memory.recorder[0]
    if r.rows == 0:
        return
    fit(memory, touch)
    row = np.uint64(touch - r.first_touch) >> np.uint64(r.shift)
    cell = np.uint64(region - r.first_region) >> np.uint64(r.cell_shift)
    if layer >= RESIDENCY and touch < r.first_touch:
        row = np.uint64(0)  # what is held when the window opens
    if row < np.uint64(r.rows) and cell < np.uint64(r.cells):
        memory.recorded[layer, row, cell] += amount
        memory.noted[layer, row] += 1


@jit_bare
def mark_row(memory: Any, touch: int) -> int:
    """Return the row of ``marks`` for this touch, -1 behind the window or without a recording."""
    r = memory.recorder[0]
    if r.rows == 0:
        return -1
    fit(memory, touch)
    if touch < r.first_touch:
        return r.rows
    row = (touch - r.first_touch) >> r.shift
    return row if row < r.rows else -1


@jit_bare
def tell(
    memory: Any, time: float, touch: int, region: int, what: int, why: int, pages: int
) -> None:
    """Add a line to the story of the recorded region, if it is this one."""
    r = memory.recorder[0]
    if r.story_region != region or pages == 0:
        return
    if r.story_n < memory.story.shape[0]:
        touched = 0
        for row in range(r.rows):
            touched += memory.recorded[TOUCHES, row, 0]
        line = memory.story[r.story_n]
        line[0], line[1], line[2] = time, touch, what
        line[3], line[4], line[5] = why, pages, touched
    r.story_n += 1
