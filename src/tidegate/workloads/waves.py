"""Waves: thread blocks that are resident together and walk in step.

The blocks of a tiled kernel share most of what they touch. A wave of them is therefore one list of
pages, each once, in the order in which the wave first needs them. The list is distributed over a
few lanes, page by page in turn, so that a missing page stalls some of the wave and not all of it;
each lane is a block of the trace.

    a workload's fill ── add_bytes, add_rows   pages, bytes of each, and the step of first use
                      └─ distribute            in order of step, over the lanes, into the columns
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.build import SEGMENT_TOUCHES
from tidegate.trace.trace import Segment
from tidegate.workloads.program import Derived

# A page that a wave needs, the step of its first use, and the access site that makes it.
NEED = np.dtype(
    [("page", "i4"), ("bytes", "i4"), ("step", "i4"), ("site", "i2"), ("write", "u1")], align=True
)


class WaveWorkload(Derived):
    """Base of workloads whose thread blocks walk in waves."""

    bytes: Option[int]
    wave = Option(656, "thread blocks resident together; 656 are 82 SMs with 8 each", least=1)
    lanes = Option(16, "blocks of the trace that share a wave's pages in turn", least=1)


class Matrix(NamedTuple):
    """A row-major matrix as a kernel sees it: its place in memory and its access site."""

    first_page: int
    page: int  # bytes
    pitch: int  # bytes from row to row
    site: int
    write: int


class Columns(NamedTuple):
    """Room for a segment's columns."""

    starts: NDArray[np.int64]
    page: NDArray[np.int32]
    write: NDArray[np.uint8]
    bytes: NDArray[np.int32]
    reference: NDArray[np.int16]


def empty_columns(touches: int) -> Columns:
    """Return room for ``touches`` touches."""
    kinds = (np.int32, np.uint8, np.int32, np.int16)
    others: Any = (np.empty(touches, kind) for kind in kinds)
    columns = Columns(np.empty(touches + 1, np.int64), *others)
    columns.starts[0] = 0
    return columns


def filled_segment(columns: Any, blocks: int, touches: int) -> Segment:
    """Return the first blocks of the columns as a segment."""
    _, *others = columns[:5]
    return Segment(columns.starts[: blocks + 1], *(column[:touches] for column in others))


# Fills in whole waves from the given one on, until there are no more or there are as many touches
# as given; takes a workload's own arguments last. Returns the next wave, and how many blocks and
# touches were filled in.
Fill = Callable[..., tuple[int, int, int]]


def wave_segments(count: int, most: int, fill: Fill, *arguments: Any) -> Iterator[Segment]:
    """Yield segments of whole waves, ``count`` waves in all, of at most ``most`` pages each."""
    wave, needs = 0, np.empty(most, NEED)
    while wave < count:
        columns = empty_columns(SEGMENT_TOUCHES + most)
        wave, blocks, touches = fill(columns, needs, wave, SEGMENT_TOUCHES, *arguments)
        yield filled_segment(columns, blocks, touches)


@jit
def wave_extent(number: int, wave: int, across: int, tiles: int) -> Any:
    """Return the first and the last tile of a wave, each as row and column of tiles.

    The grid has ``tiles`` tiles, ``across`` to a row; waves take them row by row.
    """
    first, last = number * wave, min((number + 1) * wave, tiles) - 1
    return first // across, first % across, last // across, last % across


@jit
def add_bytes(needs: Any, own: int, end: int, matrix: Any, low: int, high: int, step: int) -> Any:
    """Add the pages of bytes ``low`` to ``high`` of a matrix to the list; return its new end.

    Bytes of one matrix come in rising order, so a page that is in the list already is the last one
    since ``own``, where the matrix's part of the list begins; its bytes are added up.
    """
    number = low // matrix.page
    while low < high:
        stop = min(high, (number + 1) * matrix.page)
        if end > own and needs[end - 1].page == matrix.first_page + number:
            needs[end - 1].bytes += stop - low
        else:
            end = add_page(needs, end, matrix, number, stop - low, step)
        low = stop
        number += 1
    return end


@jit
def add_rows(needs: Any, end: int, matrix: Any, row: int, stop_row: int, width: int) -> Any:
    """Add the pages of whole rows, read from left to right, ``width`` bytes a step.

    Return the list's new end. A page's step is that of the leftmost column it holds: 0 if a row
    begins in it.
    """
    at, high = row * matrix.pitch, stop_row * matrix.pitch
    number = at // matrix.page
    while at < high:
        stop = min(high, (number + 1) * matrix.page)
        column = at % matrix.pitch
        if column + stop - at > matrix.pitch:
            column = 0
        end = add_page(needs, end, matrix, number, stop - at, column // width)
        at = stop
        number += 1
    return end


@jit
def add_page(needs: Any, end: int, matrix: Any, number: int, used: int, step: int) -> Any:
    """Add page ``number`` of a matrix to the list; return its new end."""
    needs[end].page = matrix.first_page + number
    needs[end].bytes = used
    needs[end].step = step
    needs[end].site = matrix.site
    needs[end].write = matrix.write
    return end + 1


@jit
def distribute(
    needs: Any, end: int, steps: int, lanes: int, columns: Any, block: int, touch: int
) -> Any:
    """Distribute a wave's list, sorted by step, over the lanes; return the new counts.

    The counts are of blocks and touches in the columns. Within a step the list's own order holds. A
    wave of fewer pages than lanes has fewer blocks.
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
    # pages of one step come in runs; within a run the next page goes to the next lane
    while i < end:
        step = needs[i].step
        lane, place = rank[step] % lanes, rank[step] // lanes
        while i < end and needs[i].step == step:
            to = columns.starts[block + lane] + place
            columns.page[to] = needs[i].page
            columns.write[to] = needs[i].write
            columns.bytes[to] = needs[i].bytes
            columns.reference[to] = needs[i].site
            rank[step] += 1
            i += 1
            lane += 1
            if lane == lanes:
                lane = 0
                place += 1
    columns.starts[block + lanes] = touch + end
    return block + lanes, touch + end
