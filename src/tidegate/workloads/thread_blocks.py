"""Thread blocks one by one: what a kernel's index functions use, as touches.

    @jit
    def _kernel(log, count, n):
        for block in blocks(log, count):                           a thread block is a block
            use_floats(log, 0, n * block, n * (block + 1), False)  of the first object, read

    yield launch_of(space, "kernel", _kernel, count, n)

Within a step a page is touched once, at its first use, and once more at its first store if it was
loaded before: on a GPU ``a[i] += x`` is a load and a store, and other warps run in between. Loads
behind that store belong to its touch. ``step`` begins the next step. A thread block that runs
through a long loop has several steps, so that it returns to its pages as the loop does. An object's
access site is its place in the space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.addresses import load, store
from tidegate.compiled.jit import jit
from tidegate.trace.build import SEGMENT_TOUCHES
from tidegate.trace.trace import Launch, Segment
from tidegate.workloads.program import Space
from tidegate.workloads.waves import empty_columns, filled_segment

FLOAT = 4  # bytes; an int has as many
SECTOR = 32  # bytes: the least that GPU memory moves, so the cost of an isolated access
LINE = 128  # bytes: what a warp moves at a time, so the step of a loop that walks along a row
_FIRST_ROOM = 1 << 16

_NEXT, _BLOCKS, _TOUCHES, _STEP, _FULL = range(5)
_WORD = 8  # bytes


class Log(NamedTuple):
    """Room for a segment's columns, and the places of the objects."""

    starts: NDArray[np.int64]
    page: NDArray[np.int32]
    write: NDArray[np.uint8]
    bytes: NDArray[np.int32]
    reference: NDArray[np.int16]
    # the next thread block, blocks, touches, first touch of the step, whether room ran out
    state: NDArray[np.int64]
    last: NDArray[np.int64]  # by page: its latest touch
    first_page: NDArray[np.int64]  # by object
    size: NDArray[np.int64]  # by object
    shift: int  # a page has 2^shift bytes


Kernel = Callable[[Log, int, Any], None]


def launch_of(
    space: Space, name: str, kernel: Kernel, count: int, shape: Any, intensity: float = 0.0
) -> Launch:
    """Return a launch of ``count`` thread blocks of a compiled kernel."""
    return Launch(name, segments(space, kernel, count, shape), intensity=intensity)


def segments(space: Space, kernel: Kernel, count: int, shape: Any) -> Iterator[Segment]:
    """Yield the touches of thread blocks 0 to ``count`` of a compiled kernel."""
    block, room = 0, _FIRST_ROOM
    last = np.full(max(o.first_page + o.pages for o in space.values()), -1, np.int64)
    while block < count:
        log = _log(space, room, last)
        log.state[_NEXT] = block
        kernel(log, count, shape)
        block, filled = int(log.state[_NEXT]), int(log.state[_BLOCKS])
        if filled:
            yield filled_segment(log, filled, int(log.starts[filled]))
        if log.state[_FULL]:
            room *= 4
        room = max(room, min(4 * room, SEGMENT_TOUCHES))


def _log(space: Space, room: int, last: NDArray[np.int64]) -> Log:
    objects = list(space.values())
    return Log(
        *empty_columns(room),
        state=np.zeros(5, np.int64),
        last=last,
        first_page=np.array([o.first_page for o in objects], np.int64),
        size=np.array([o.bytes for o in objects], np.int64),
        shift=space.geometry.page.bit_length() - 1,
    )


@numba.njit  # not cached: Numba cannot use a generator from its cache in new code
def blocks(log: Any, count: int) -> Any:
    """Yield the next thread blocks, as long as there are any and there is room.

    A thread block without touches is left out. One that finds no room is done again, in the next
    log.
    """
    return _blocks(log.state.ctypes.data, log.starts.ctypes.data, len(log.page), count)


@numba.njit
def _blocks(state: int, starts: int, room: int, count: int) -> Any:
    """Yield as ``blocks``; takes addresses, because Numba's generators never free their arrays."""
    while load(state + _WORD * _NEXT) < count and 2 * load(state + _WORD * _TOUCHES) < room:
        block = load(state + _WORD * _NEXT)
        yield block
        if load(state + _WORD * _FULL):
            return
        number, touches = load(state + _WORD * _BLOCKS), load(state + _WORD * _TOUCHES)
        if touches > load(starts + _WORD * number):
            store(state + _WORD * _BLOCKS, number + 1)
            store(starts + _WORD * (number + 1), touches)
        store(state + _WORD * _STEP, touches)
        store(state + _WORD * _NEXT, block + 1)


@jit
def use(log: Any, array: int, low: int, high: int, write: bool) -> None:
    """Use bytes ``low`` to ``high`` of an object in the current thread block."""
    low = max(low, 0)
    high = min(high, log.size[array])
    while low < high:
        number = low >> log.shift
        stop = min(high, (number + 1) << log.shift)
        page = log.first_page[array] + number
        at = log.last[page]
        touches = log.state[_TOUCHES]
        known = log.state[_STEP] <= at < touches and log.page[at] == page
        if not known or (write and not log.write[at]):
            if touches == len(log.page):
                log.state[_FULL] = 1
                return
            at = touches
            log.page[at], log.write[at], log.bytes[at], log.reference[at] = page, write, 0, array
            log.last[page] = at
            log.state[_TOUCHES] = touches + 1
        within = min(1 << log.shift, log.size[array] - (number << log.shift))
        log.bytes[at] = min(within, log.bytes[at] + stop - low)
        low = stop


@jit
def change(log: Any, array: int, low: int, high: int) -> None:
    """Load and then store bytes ``low`` to ``high`` of an object."""
    use(log, array, low, high, False)
    use(log, array, low, high, True)


@jit
def use_floats(log: Any, array: int, low: int, high: int, write: bool) -> None:
    """Use floats (or ints) ``low`` to ``high`` of an object."""
    use(log, array, FLOAT * low, FLOAT * high, write)


@jit
def use_sector(log: Any, array: int, at: int, write: bool) -> None:
    """Use the byte ``at`` by itself, which costs a sector."""
    low = at // SECTOR * SECTOR
    use(log, array, low, low + SECTOR, write)


@jit
def use_rect(log: Any, array: int, pitch: int, rows: Any, columns: Any, write: bool) -> None:
    """Use rows and columns, each from first to stop, of a matrix with ``pitch`` floats a row.

    Columns are clipped to the matrix.
    """
    for row in range(rows[0], rows[1]):
        low, high = row * pitch + max(0, columns[0]), row * pitch + min(pitch, columns[1])
        use_floats(log, array, low, high, write)


@jit
def step(log: Any) -> None:
    """Begin the next step of the thread block's loop, in which pages are touched again."""
    log.state[_STEP] = log.state[_TOUCHES]


@jit
def across(n: int, tile: int) -> Any:
    """Return how many tiles cover n."""
    return (n + tile - 1) // tile


@jit
def tile_of(block: int, n: int, wide: int, tall: int, edge: int = 0) -> Any:
    """Return rows and columns of a thread block's tile of an n × n matrix, blockIdx.x fastest.

    The first and last ``edge`` rows and columns of the matrix are left out.
    """
    tiles = across(n, wide)
    top, left = block // tiles * tall, block % tiles * wide
    rows = max(edge, top), min(n - edge, top + tall)
    return rows, (max(edge, left), min(n - edge, left + wide))
