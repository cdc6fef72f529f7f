"""Thread blocks one by one: what a kernel's index functions use, as touches.

    @jit
    def _kernel(log, block, count, n):
        while block < count and going(log):
            use(log, 0, 4 * n * block, 4 * n * (block + 1), False)      bytes of the first object, read
            block += closed(log)                                        one thread block is a block of the trace
        return block

    yield Launch("kernel", stream(space, _kernel, count, (n,)))

Within a step a page is touched once, when it is first used; ``step`` begins the next one. A thread
block that runs through a long loop has several steps, so that it comes back to its pages as the
loop does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit
from tidegate.trace.build import SEGMENT_TOUCHES
from tidegate.trace.trace import Segment
from tidegate.workloads.program import Space

FLOAT = 4  # bytes; an int has as many
SECTOR = 32  # bytes: the least that GPU memory moves, so what a jump to a place of its own costs
LINE = 128  # bytes: what a warp moves at a time, so the step of a loop that walks along a row
_FIRST_ROOM = 1 << 16

_BLOCKS, _TOUCHES, _STEP, _FULL = range(4)


class Log(NamedTuple):
    """Room for a segment's columns, and where the objects lie."""

    starts: NDArray[np.int64]
    page: NDArray[np.int32]
    write: NDArray[np.uint8]
    bytes: NDArray[np.int32]
    reference: NDArray[np.int16]
    state: NDArray[np.int64]  # blocks, touches, where the step began, whether there was no room
    last: NDArray[np.int64]  # by page: its latest touch
    first_page: NDArray[np.int64]  # by object
    size: NDArray[np.int64]  # by object
    shift: int  # a page has 2^shift bytes


Kernel = Callable[[Log, int, int, Any], int]


def stream(space: Space, kernel: Kernel, count: int, shape: Any) -> Iterator[Segment]:
    """The touches of thread blocks 0 to ``count`` of a compiled kernel; an object's reference is
    its place in the space.
    """
    block, room = 0, _FIRST_ROOM
    last = np.full(max(o.first_page + o.pages for o in space.values()), -1, np.int64)
    while block < count:
        log = _log(space, room, last)
        block = kernel(log, block, count, shape)
        blocks, touches = int(log.state[_BLOCKS]), int(log.starts[log.state[_BLOCKS]])
        if blocks:
            columns: Any = (c[:touches] for c in (log.page, log.write, log.bytes, log.reference))
            yield Segment(log.starts[: blocks + 1], *columns)
        if log.state[_FULL]:
            room *= 4
        room = max(room, min(4 * room, SEGMENT_TOUCHES))


def _log(space: Space, room: int, last: NDArray[np.int64]) -> Log:
    objects = list(space.values())
    return Log(
        starts=np.zeros(room + 1, np.int64),
        page=np.empty(room, np.int32),
        write=np.empty(room, np.uint8),
        bytes=np.empty(room, np.int32),
        reference=np.empty(room, np.int16),
        state=np.zeros(4, np.int64),
        last=last,
        first_page=np.array([o.first_page for o in objects], np.int64),
        size=np.array([o.bytes for o in objects], np.int64),
        shift=space.geometry.page.bit_length() - 1,
    )


def fitted(size: int, sizes: Callable[[int], Mapping[str, int]]) -> int:
    """The largest number, at least 1, whose objects take no more than ``size`` bytes."""
    low, high = 1, 2
    while sum(sizes(high).values()) <= size:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if sum(sizes(middle).values()) <= size:
            low = middle
        else:
            high = middle
    return low


@jit
def going(log: Any) -> Any:
    """Whether there is room for another thread block."""
    return log.state[_FULL] == 0 and 2 * log.state[_TOUCHES] < len(log.page)


@jit
def use(log: Any, array: int, low: int, high: int, write: bool) -> None:
    """The thread block uses bytes ``low`` to ``high`` of an object."""
    low = max(low, 0)
    high = min(high, log.size[array])
    while low < high:
        number = low >> log.shift
        stop = min(high, (number + 1) << log.shift)
        page = log.first_page[array] + number
        at = log.last[page]
        touches = log.state[_TOUCHES]
        if at < log.state[_STEP] or at >= touches or log.page[at] != page:
            if touches == len(log.page):
                log.state[_FULL] = 1
                return
            at = touches
            log.page[at], log.write[at], log.bytes[at], log.reference[at] = page, 0, 0, array
            log.last[page] = at
            log.state[_TOUCHES] = touches + 1
        within = min(1 << log.shift, log.size[array] - (number << log.shift))
        log.bytes[at] = min(within, log.bytes[at] + stop - low)
        if write:
            log.write[at] = 1
        low = stop


@jit
def jump(log: Any, array: int, at: int, write: bool) -> None:
    """The thread block uses one place by itself, which costs a sector."""
    low = at // SECTOR * SECTOR
    use(log, array, low, low + SECTOR, write)


@jit
def step(log: Any) -> None:
    """The thread block goes on with the next step of its loop: pages it comes back to are touched
    again.
    """
    log.state[_STEP] = log.state[_TOUCHES]


@jit
def closed(log: Any) -> Any:
    """End a thread block; answers 1, or 0 if there was no room and it must be done again.

    One without touches is none.
    """
    blocks = log.state[_BLOCKS]
    if log.state[_FULL]:
        log.state[_TOUCHES] = log.starts[blocks]
        return 0
    if log.state[_TOUCHES] > log.starts[blocks]:
        log.state[_BLOCKS] = blocks + 1
        log.starts[blocks + 1] = log.state[_TOUCHES]
    log.state[_STEP] = log.state[_TOUCHES]
    return 1


@jit
def across(n: int, tile: int) -> Any:
    """Tiles that cover n."""
    return (n + tile - 1) // tile


@jit
def rect(log: Any, array: int, pitch: int, rows: Any, columns: Any, write: bool) -> None:
    """Rows and columns, each from first to stop, of a matrix with ``pitch`` floats a row; columns
    stay within.
    """
    for row in range(rows[0], rows[1]):
        at = row * pitch
        use(
            log,
            array,
            FLOAT * (at + max(0, columns[0])),
            FLOAT * (at + min(pitch, columns[1])),
            write,
        )
