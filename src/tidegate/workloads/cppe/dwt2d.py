"""DWT: the wavelet transform of a picture, colour by colour, level by level."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt
from typing import Any

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.cppe.kernel import FLOAT, across, closed, going, stream, use
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.suites import published_bytes

PIXELS = 256  # of a thread block that splits the picture into colours
WINDOW = 8  # rows of a sliding window
# as they are allocated; backup is for copies alone
ARRAYS = ("r_out", "g_out", "b_out", "r", "g", "b", "src")
_OUT, _IN, _SRC = 0, 3, 6


@workload("cppe-DWT")
class DWT(Workload):
    """The 5/3 wavelet transform of an n × n picture in three colours: dwt2d of Rodinia, forward,
    ``levels`` levels.

        c_CopySrcToComponents   256 pixels a thread block:  r, g, b[i] = src[3 i], src[3 i + 1], src[3 i + 2]
        fdwt53Kernel            for each colour and level, the side s halving;  W = 192, 128 or 64 columns (s >= 960, 480, 0)
                                8 * steps rows, steps = ⌈s / 120⌉, slid through in windows of 8:
            reads    in[y][x]    x from W bx - 2 to W bx + W, y from 8 steps by - 2 to 8 steps (by + 1), within the picture
            writes   out         even and odd rows and columns apart: bands LL, HL, LH, HH, one after another

    The rows of a level's picture have its side as their pitch. Grid order: blockIdx.x fastest. The
    copies between levels (out's LL band back to in) and to backup are no kernels and left out.
    References: the arrays as they are allocated. Table II: dwt2d, 27 MB, Type II; 1024 × 1024
    pixels of 3 bytes and six int arrays make 27 MiB.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        published_bytes("cppe", "cppe-DWT"),
        "size of the picture and six arrays",
        parse=units.size,
        least=1,
    )
    levels = Option(3, "levels of the transform (a choice: 3, as Rodinia's default)", least=1)

    @property
    def n(self) -> int:
        """Rows and columns of the picture."""
        return isqrt(self.bytes // 27)

    def sizes(self) -> dict[str, int]:
        return dict.fromkeys(ARRAYS[:-1], FLOAT * self.n**2) | {"src": 3 * self.n**2}

    def launches(self, space: Space) -> Iterator[Launch]:
        yield Launch(
            "c_CopySrcToComponents", stream(space, _split, across(self.n**2, PIXELS), (self.n**2,))
        )
        for colour in range(3):
            side = self.n
            for _ in range(self.levels):
                width = 192 if side >= 960 else 128 if side >= 480 else 64
                steps = across(side, 15 * WINDOW)
                count = across(side, width) * across(side, WINDOW * steps)
                yield Launch(
                    "fdwt53Kernel", stream(space, _transform, count, (side, width, steps, colour))
                )
                side = across(side, 2)


@jit
def _split(log: Any, block: int, count: int, shape: Any) -> Any:
    pixels = shape[0]
    while block < count and going(log):
        low, high = PIXELS * block, min(pixels, PIXELS * (block + 1))
        use(log, _SRC, 3 * low, 3 * high, False)
        for colour in range(3):
            use(log, _IN + colour, FLOAT * low, FLOAT * high, True)
        block += closed(log)
    return block


@jit
def _transform(log: Any, block: int, count: int, shape: Any) -> Any:
    side, width, steps, colour = shape
    tiles = across(side, width)
    while block < count and going(log):
        left, top = block % tiles * width, block // tiles * WINDOW * steps
        ready = max(0, top - 2)  # rows loaded so far
        for window in range(steps):
            first = top + WINDOW * window
            stop = min(side, first + WINDOW + 1)
            for y in range(ready, stop):
                low, high = max(0, left - 2), min(side, left + width + 1)
                use(log, _IN + colour, FLOAT * (side * y + low), FLOAT * (side * y + high), False)
            ready = max(ready, stop)
            for y in range(first, min(side, first + WINDOW)):
                _store(log, _OUT + colour, side, y, left, min(side, left + width))
        block += closed(log)
    return block


@jit
def _store(log: Any, array: int, side: int, y: int, left: int, right: int) -> None:
    """Columns ``left`` to ``right`` of row y, each into the band of its parity and the row's."""
    low, high = (side + 1) // 2, side // 2  # sides of the even and the odd bands
    even = 0 if y % 2 == 0 else low * low + high * low
    odd = low * low if y % 2 == 0 else low * low + 2 * high * low
    row = y // 2
    use(
        log,
        array,
        FLOAT * (even + row * low + (left + 1) // 2),
        FLOAT * (even + row * low + (right + 1) // 2),
        True,
    )
    use(
        log,
        array,
        FLOAT * (odd + row * high + left // 2),
        FLOAT * (odd + row * high + right // 2),
        True,
    )
