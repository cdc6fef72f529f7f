"""HIS: a saturating histogram of a picture, built in pieces and put together."""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.workloads.program import Derived, Launches, Space, largest_fit, workload
from tidegate.workloads.suites import published_bytes, published_footprint
from tidegate.workloads.thread_blocks import (
    FLOAT,
    across,
    blocks,
    change,
    launch_of,
    step,
    use,
    use_floats,
)

PIECES = 14  # BLOCK_X: partial histograms
RANGE = 24 * 1024  # BINS_PER_BLOCK
THREADS = 768
LINES = 16  # UNROLL: lines of the picture in a thread block
PRESCAN_BLOCKS, FINAL_BLOCKS, FINAL_THREADS = 64, 42, 512
# of Parboil's default picture, from memory; its histogram is WIDTH × BINS
WIDTH, HEIGHT, BINS = 996, 1040, 1024
_INPUT, _MAPPINGS, _SUB, _GLOBAL, _OVERFLOW, _FINAL = range(6)


@workload("cppe-HIS")
class Histogram(Derived):
    """A histogram that saturates at 255: histo of Parboil, width × height ints, about as many bins.

    Most values are near the middle.

        histo_prescan         64 thread blocks:  the first eighth of their 64th of input, twice
        histo_intermediates   one for 16 lines:  sm_mappings[line] = f(input[line])
        histo_main            (x, y) of 14 × ranges:  sm_mappings[768 (x + 14 i) + tx], i = 0, 1, …
                              then global_subhisto[x bins + range y], 24 KiB, a byte per bin
        histo_final           42 thread blocks of 512, four bins a thread, i = 512 b + tx, + 42 *
                              512, …:
            below and above the ranges:  global_histo[i] is read and cleared, final_histo[i] written
            within:  global_overflow[i] likewise, global_subhisto[x bins + i] of all 14 x,
                     final_histo[i]

    Only what is touched is laid out: the ranges of global_subhisto and global_overflow, the rest of
    global_histo. Grid order: blockIdx.x fastest. Access sites: the arrays as they are allocated.
    The picture's values matter only for the ranges: none lies outside ten standard deviations here,
    and no bin overflows. Table II: histo, 13.2 MB, Type V; Parboil's 996 × 1040 picture with 6
    ranges makes 13.1 MiB.
    """

    bytes = published_footprint("cppe-HIS", "size of what is touched of all")
    iterations = Option(
        20, "iterations (a choice: 20, as Parboil's default input, from memory)", least=1
    )
    ranges = Option(
        6, "ranges of 24,576 bins near the middle (a choice: fits the picture to 13.2 MB)", least=1
    )

    @property
    def width(self) -> int:
        """Of the picture; even, so that no line is padded."""
        scale = (self.bytes / published_bytes("cppe-HIS")) ** 0.5
        return 2 * max(1, round(WIDTH / 2 * scale))

    @property
    def height(self) -> int:
        return largest_fit(self.bytes, lambda height: _sizes(self.width, height, self.ranges))

    def sizes(self) -> dict[str, int]:
        return _sizes(self.width, self.height, self.ranges)

    def launches(self, space: Space) -> Launches:
        width, height = self.width, self.height
        pixels, (bins, middle) = width * height, _bins(width, height, self.ranges)
        stride = pixels // PRESCAN_BLOCKS
        lines, pieces = across(height, LINES), PIECES * across(middle, RANGE)
        for _ in range(self.iterations):
            if stride // 8:
                shape = (stride, stride // 8)
                yield launch_of(space, "histo_prescan_kernel", _prescan, PRESCAN_BLOCKS, shape)
            yield launch_of(space, "histo_intermediates_kernel", _map, lines, (width, height))
            yield launch_of(space, "histo_main_kernel", _count, pieces, (pixels, middle))
            yield launch_of(space, "histo_final_kernel", _final, FINAL_BLOCKS, (bins, middle))


def _bins(width: int, height: int, ranges: int) -> tuple[int, int]:
    """Return the bins of the histogram, in fours, and those of them in ranges."""
    bins = 4 * max(1, width * height * BINS // HEIGHT // 4)
    return bins, min(bins, ranges * RANGE)


def _sizes(width: int, height: int, ranges: int) -> dict[str, int]:
    bins, middle = _bins(width, height, ranges)
    picture = FLOAT * width * height
    outside = max(FLOAT, 2 * (bins - middle))  # an object must have some bytes
    sizes = {"input": picture, "sm_mappings": picture, "global_subhisto": PIECES * middle}
    sizes |= {"global_histo": outside, "global_overflow": 4 * middle, "final_histo": bins}
    return sizes


@jit
def _prescan(log: Any, count: int, shape: Any) -> None:
    stride, sample = shape
    for block in blocks(log, count):
        for _ in range(2):  # the mean, then the deviation
            step(log)
            use_floats(log, _INPUT, stride * block, stride * block + sample, False)


@jit
def _map(log: Any, count: int, shape: Any) -> None:
    width, height = shape
    for block in blocks(log, count):
        for line in range(LINES * block, min(height, LINES * (block + 1))):
            use_floats(log, _INPUT, width * line, width * (line + 1), False)
            use_floats(log, _MAPPINGS, width * line, width * (line + 1), True)


@jit
def _count(log: Any, count: int, shape: Any) -> None:
    pixels, middle = shape
    for block in blocks(log, count):
        x, y = block % PIECES, block // PIECES
        for at in range(THREADS * x, pixels, THREADS * PIECES):
            use_floats(log, _MAPPINGS, at, min(pixels, at + THREADS), False)
        use(log, _SUB, middle * x + RANGE * y, middle * x + min(middle, RANGE * (y + 1)), True)


@jit
def _final(log: Any, count: int, shape: Any) -> None:
    bins, middle = shape
    low = (bins - middle) // 2 // 4 * 4
    four = 4 * FINAL_THREADS
    for block in blocks(log, count):
        for at in range(four * block, low, four * count):
            stop = min(low, at + four)
            change(log, _GLOBAL, 2 * at, 2 * stop)
            use(log, _FINAL, at, stop, True)
        for at in range(four * block, middle, four * count):
            stop = min(middle, at + four)
            change(log, _OVERFLOW, 4 * at, 4 * stop)
            for x in range(PIECES):
                use(log, _SUB, middle * x + at, middle * x + stop, False)
            use(log, _FINAL, low + at, low + stop, True)
        for at in range(low + four * block, bins - middle, four * count):
            stop = min(bins - middle, at + four)
            change(log, _GLOBAL, 2 * at, 2 * stop)
            use(log, _FINAL, middle + at, middle + stop, True)
