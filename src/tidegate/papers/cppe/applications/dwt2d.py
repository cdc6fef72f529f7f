"""DWT: the wavelet transform of a picture, colour by colour, level by level."""

from __future__ import annotations

from math import isqrt
from typing import Any

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.workloads.program import Derived, Launches, Space, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import FLOAT, across, blocks, launch_of, use, use_floats

PIXELS = 256  # of a thread block that splits the picture into colours
WINDOW = 8  # rows of a sliding window
# as they are allocated; backup is for copies alone
ARRAYS = ("r_out", "g_out", "b_out", "r", "g", "b", "src")
_OUT, _IN, _SRC = 0, 3, 6


@workload("cppe-DWT")
class DWT(Derived):
    """The 5/3 wavelet transform of an n × n picture in three colours: dwt2d of Rodinia, forward.

        c_CopySrcToComponents   256 pixels a thread block:
            r, g, b[i] = src[3 i], src[3 i + 1], src[3 i + 2]
        fdwt53Kernel            for each colour and level, the side s halving
            W = 192, 128 or 64 columns (s >= 960, 480, 0) and 8 * steps rows, steps = ⌈s / 120⌉, in
            windows of 8:
            reads    in[y][x]    x from W bx - 2 to W bx + W, y from 8 steps by - 2 to 8 steps
                                 (by + 1), within the picture
            writes   out         even and odd rows and columns apart: bands LL, HL, LH, HH

    The rows of a level's picture have its side as their pitch. Grid order: blockIdx.x fastest. The
    copies between levels (out's LL band back to in) and to backup are no kernels and left out.
    Access sites: the arrays as they are allocated. Table II: dwt2d, 27 MB, Type II; 1024 × 1024
    pixels of 3 bytes and six int arrays make 27 MiB.
    """

    bytes = published_footprint("cppe-DWT", "size of the picture and six arrays")
    levels = Option(3, "levels of the transform (a choice: 3, as Rodinia's default)", least=1)

    @property
    def n(self) -> int:
        """Rows and columns of the picture."""
        return isqrt(self.bytes // 27)

    def sizes(self) -> dict[str, int]:
        return dict.fromkeys(ARRAYS[:-1], FLOAT * self.n**2) | {"src": 3 * self.n**2}

    def launches(self, space: Space) -> Launches:
        pixels = self.n**2
        count = across(pixels, PIXELS)
        yield launch_of(space, "c_CopySrcToComponents", _split, count, (pixels,))
        for colour in range(3):
            side = self.n
            for _ in range(self.levels):
                width = 192 if side >= 960 else 128 if side >= 480 else 64
                steps = across(side, 15 * WINDOW)
                count = across(side, width) * across(side, WINDOW * steps)
                shape = (side, width, steps, colour)
                yield launch_of(space, "fdwt53Kernel", _transform, count, shape)
                side = across(side, 2)


@jit
def _split(log: Any, count: int, shape: Any) -> None:
    pixels = shape[0]
    for block in blocks(log, count):
        low, high = PIXELS * block, min(pixels, PIXELS * (block + 1))
        use(log, _SRC, 3 * low, 3 * high, False)
        for colour in range(3):
            use_floats(log, _IN + colour, low, high, True)


@jit
def _transform(log: Any, count: int, shape: Any) -> None:
    side, width, steps, colour = shape
    tiles = across(side, width)
    for block in blocks(log, count):
        left, top = block % tiles * width, block // tiles * WINDOW * steps
        low, high = max(0, left - 2), min(side, left + width + 1)
        ready = max(0, top - 2)  # rows loaded so far
        for window in range(steps):
            first = top + WINDOW * window
            stop = min(side, first + WINDOW + 1)
            for y in range(ready, stop):
                use_floats(log, _IN + colour, side * y + low, side * y + high, False)
            ready = max(ready, stop)
            for y in range(first, min(side, first + WINDOW)):
                _store(log, _OUT + colour, side, y, left, min(side, left + width))


@jit
def _store(log: Any, array: int, side: int, y: int, left: int, right: int) -> None:
    """Write columns ``left`` to ``right`` of row y, each into the band of its parity and y's."""
    low, high = (side + 1) // 2, side // 2  # sides of the even and the odd bands
    even = 0 if y % 2 == 0 else low * low + high * low
    odd = low * low if y % 2 == 0 else low * low + 2 * high * low
    even, odd = even + y // 2 * low, odd + y // 2 * high
    use_floats(log, array, even + (left + 1) // 2, even + (right + 1) // 2, True)
    use_floats(log, array, odd + left // 2, odd + right // 2, True)
