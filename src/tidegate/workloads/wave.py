"""Waves: thread blocks that are resident together and walk in step.

The blocks of a tiled kernel share most of what they touch. A wave of them is therefore one list of
pages, each once, in the order in which the wave first needs them. The list is dealt like cards over
a few lanes, so that a missing page holds up some of the wave and not all of it; each lane is a
block of the trace.

    a workload's fill ── stretch, panel      which pages, how many bytes of each, first needed in which step
                      └─ deal                in order of step, over the lanes, into a segment's columns
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit
from tidegate.trace.build import SEGMENT_TOUCHES
from tidegate.trace.trace import Segment

# A page that a wave needs, and the step in which it first does.
NEED = np.dtype(
    [("page", "i4"), ("bytes", "i4"), ("step", "i4"), ("reference", "i2"), ("write", "u1")],
    align=True,
)


class Matrix(NamedTuple):
    """A row-major matrix as a kernel sees it: where it lies, and which of the kernel's references
    it is.
    """

    first_page: int
    page: int  # bytes
    pitch: int  # bytes from row to row
    reference: int
    write: int


class Columns(NamedTuple):
    """Room for a segment's columns, filled wave by wave."""

    starts: NDArray[np.int64]
    page: NDArray[np.int32]
    write: NDArray[np.uint8]
    bytes: NDArray[np.int32]
    reference: NDArray[np.int16]


# Fills in whole waves from the given one on, until there are no more or there are as many touches
# as given. Returns the wave to go on with, and how many blocks and touches were filled in.
Fill = Callable[[Columns, NDArray[Any], int, int], tuple[int, int, int]]


def waves(count: int, most: int, fill: Fill) -> Iterator[Segment]:
    """Segments of whole waves, ``count`` waves in all, of which none needs more than ``most``
    pages.
    """
    wave, needs = 0, np.empty(most, NEED)
    while wave < count:
        room = _room(SEGMENT_TOUCHES + most)
        wave, blocks, n = fill(room, needs, wave, SEGMENT_TOUCHES)
        yield Segment(
            room.starts[: blocks + 1],
            room.page[:n],
            room.write[:n],
            room.bytes[:n],
            room.reference[:n],
        )


def _room(touches: int) -> Columns:
    return Columns(
        np.empty(touches + 1, np.int64),
        np.empty(touches, np.int32),
        np.empty(touches, np.uint8),
        np.empty(touches, np.int32),
        np.empty(touches, np.int16),
    )


@jit
def stretch(needs: Any, own: int, end: int, matrix: Any, low: int, high: int, step: int) -> Any:
    """Add the pages of bytes ``low`` to ``high`` of a matrix to the list; returns the list's new
    end.

    Stretches of one matrix come in rising order, so a page that is in the list already is the last
    one since ``own``, where the matrix's part of the list begins; it only gets the bytes.
    """
    number = low // matrix.page
    while low < high:
        stop = min(high, (number + 1) * matrix.page)
        if end > own and needs[end - 1].page == matrix.first_page + number:
            needs[end - 1].bytes += stop - low
        else:
            end = _need(needs, end, matrix, number, stop - low, step)
        low = stop
        number += 1
    return end


@jit
def panel(needs: Any, end: int, matrix: Any, row: int, stop_row: int, width: int) -> Any:
    """Add the pages of whole rows, swept from left to right, ``width`` bytes a step; returns the
    new end.

    A page's step is that of the leftmost column it holds: 0 if a row begins in it.
    """
    at, high = row * matrix.pitch, stop_row * matrix.pitch
    number = at // matrix.page
    while at < high:
        stop = min(high, (number + 1) * matrix.page)
        column = at % matrix.pitch
        if column + stop - at > matrix.pitch:
            column = 0
        end = _need(needs, end, matrix, number, stop - at, column // width)
        at = stop
        number += 1
    return end


@jit
def _need(needs: Any, end: int, matrix: Any, number: int, used: int, step: int) -> Any:
    needs[end].page = matrix.first_page + number
    needs[end].bytes = used
    needs[end].step = step
    needs[end].reference = matrix.reference
    needs[end].write = matrix.write
    return end + 1


@jit
def deal(needs: Any, end: int, steps: int, lanes: int, columns: Any, block: int, touch: int) -> Any:
    """Deal a wave's list, sorted by step, over the lanes; returns how many blocks and touches there
    are now.

    Within a step the list's own order holds. A wave of fewer pages than lanes has fewer blocks.
    """
    # where the next page of each step comes in the sorted list
    rank = np.zeros(steps + 1, np.int64)
    for i in range(end):
        rank[needs[i].step + 1] += 1
    rank = np.cumsum(rank)
    lanes = min(lanes, end)
    for lane in range(lanes):
        columns.starts[block + lane] = touch + lane * (end // lanes) + min(lane, end % lanes)
    i = 0
    # pages of one step come in runs; within a run the next card goes to the next lane
    while i < end:
        step = needs[i].step
        lane, card = rank[step] % lanes, rank[step] // lanes
        while i < end and needs[i].step == step:
            to = columns.starts[block + lane] + card
            columns.page[to] = needs[i].page
            columns.write[to] = needs[i].write
            columns.bytes[to] = needs[i].bytes
            columns.reference[to] = needs[i].reference
            rank[step] += 1
            i += 1
            lane += 1
            if lane == lanes:
                lane = 0
                card += 1
    columns.starts[block + lanes] = touch + end
    return block + lanes, touch + end
