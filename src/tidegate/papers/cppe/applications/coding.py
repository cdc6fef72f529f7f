"""DWT and SAD: coding of pictures and video, a wavelet transform and a search for motion."""

from __future__ import annotations

from math import isqrt
from typing import Any

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.workloads.program import Derived, Launches, Space, largest_fit, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import FLOAT, across, blocks, launch_of, step, use, use_floats

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


SHORT = 2  # bytes
POSITIONS = 1096  # MAX_POS_PADDED: the 33 × 33 places searched, padded
_USED = 2 * (1089 + 1)  # bytes of them that the two larger kernels read and write
_STEP = 2 * 64  # bytes of a vector in a step: 32 threads, two places each
ACROSS = 11  # macroblocks of a row: 176 pixels, QCIF
_SIDE = 16  # pixels of a macroblock
_CUR, _SADS = range(2)
# where the sums of each size begin, in macroblocks' vectors: SAD_TYPE_1_IX to 7
_TYPES = (0, 1, 3, 5, 9, 17, 25)
# type and vectors to a macroblock: the type that is read, then those that are written
_STEP_8 = ((7, 16), (6, 8), (5, 8), (4, 4))
_STEP_16 = ((4, 4), (3, 2), (2, 2), (1, 1))


@workload("cppe-SAD")
class SAD(Derived):
    """Sums of absolute differences for motion search: sad of Parboil.

    The picture is 11 macroblocks (16 × 16 pixels) wide. Vectors of 1096 shorts, 41 to a macroblock
    m, all of one size together, the largest (type 1) first:

        mb_sad_calc          a thread block per 4 × 4 pixels:  reads them
                             writes vector 16 m + 4 (y % 4) + x % 4 of type 7
        larger_sad_calc_8    one per macroblock:  reads its 16 of type 7
                             writes 8 of type 6, 8 of type 5, 4 of type 4
        larger_sad_calc_16   one per macroblock:  reads its 4 of type 4
                             writes 2 of type 3, 2 of type 2, 1 of type 1

    Grid order: blockIdx.x fastest, along the rows of the picture, so mb_sad_calc returns to each
    macroblock four times. The two larger kernels loop over the places, 64 in each of 17 steps, and
    use these of all their vectors in each. The reference picture is a texture's array, which is not
    managed, and left out. Access sites: 0 = the picture, 1 = the vectors. Table II: sad, 8.5 MB,
    Type II; the 99 macroblocks of Parboil's default input, 176 × 144 pixels, make 8.5 MiB.
    """

    bytes = published_footprint("cppe-SAD", "size of the picture and all vectors")

    @property
    def macroblocks(self) -> int:
        """Macroblocks; the last row may have fewer than the picture has room for."""
        return largest_fit(self.bytes, _sizes)

    def sizes(self) -> dict[str, int]:
        return _sizes(self.macroblocks)

    def launches(self, space: Space) -> Launches:
        n = self.macroblocks
        yield launch_of(space, "mb_sad_calc", _calc, 16 * ACROSS * across(n, ACROSS), (n,))
        yield launch_of(space, "larger_sad_calc_8", _larger, n, (n, _STEP_8))
        yield launch_of(space, "larger_sad_calc_16", _larger, n, (n, _STEP_16))


def _sizes(macroblocks: int) -> dict[str, int]:
    picture = SHORT * _SIDE**2 * ACROSS * -(-macroblocks // ACROSS)
    return {"cur": picture, "sads": SHORT * 41 * POSITIONS * macroblocks}


@jit
def _calc(log: Any, count: int, shape: Any) -> None:
    n = shape[0]
    for block in blocks(log, count):
        x, y = block % (4 * ACROSS), block // (4 * ACROSS)
        macroblock = y // 4 * ACROSS + x // 4
        if macroblock < n:
            for row in range(4 * y, 4 * y + 4):
                at = SHORT * (row * ACROSS * _SIDE + 4 * x)
                use(log, _CUR, at, at + SHORT * 4, False)
            at = SHORT * POSITIONS * (_TYPES[6] * n + 16 * macroblock + 4 * (y % 4) + x % 4)
            use(log, _SADS, at, at + SHORT * POSITIONS, True)


@jit
def _larger(log: Any, count: int, shape: Any) -> None:
    n, vectors = shape
    for block in blocks(log, count):
        for places in range(0, _USED // _STEP * _STEP, _STEP):
            last = places + 2 * _STEP > _USED
            for i in range(len(vectors)):
                kind, each = vectors[i]
                first = _TYPES[kind - 1] * n + each * block
                for vector in range(first, first + each):
                    at = SHORT * POSITIONS * vector
                    use(log, _SADS, at + places, at + (_USED if last else places + _STEP), i > 0)
            step(log)
