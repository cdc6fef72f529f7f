"""HIS: a saturating histogram of a picture, built in pieces and put together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.cppe.kernel import FLOAT, across, closed, fitted, going, step, stream, use
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.suites import published_bytes

PIECES = 14  # BLOCK_X: partial histograms
RANGE = 24 * 1024  # BINS_PER_BLOCK
THREADS = 768
LINES = 16  # UNROLL: lines of the picture in a thread block
PRESCAN_BLOCKS, FINAL_BLOCKS, FINAL_THREADS = 64, 42, 512
# of Parboil's default picture, from memory; its histogram is WIDTH × BINS
WIDTH, HEIGHT, BINS = 996, 1040, 1024
ARRAYS = (
    "input",
    "sm_mappings",
    "global_subhisto",
    "global_histo",
    "global_overflow",
    "final_histo",
)
_INPUT, _MAPPINGS, _SUB, _GLOBAL, _OVERFLOW, _FINAL = range(6)


@workload("cppe-HIS")
class Histogram(Workload):
    """A histogram that stops at 255: histo of Parboil, width × height ints, about as many bins,
    most values near the middle.

        histo_prescan         64 thread blocks:  the first eighth of their 64th of input, twice
        histo_intermediates   one for 16 lines:  sm_mappings[line] = f(input[line])
        histo_main            (x, y) of 14 × ranges:  sm_mappings[768 (x + 14 i) + tx], i = 0, 1, …;  then
                              global_subhisto[x bins + range y], 24 KiB, a byte per bin
        histo_final           42 thread blocks of 512, four bins a thread, i = 512 b + tx, + 42 * 512, …:
                              below and above the ranges:  global_histo[i] is read and cleared, final_histo[i] written
                              within:  global_overflow[i] likewise, global_subhisto[x bins + i] of all 14 x, final_histo[i]

    Only what is touched is laid out: the ranges of global_subhisto and global_overflow, the rest of
    global_histo. Grid order: blockIdx.x fastest. References: the arrays as they are allocated.
    Which values the picture has matters only for the ranges: none lies outside ten standard
    deviations here, and no bin overflows. Table II: histo, 13.2 MB, Type V; Parboil's 996 × 1040
    picture with 6 ranges makes 13.1 MiB.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        published_bytes("cppe", "cppe-HIS"),
        "size of what is touched of all",
        parse=units.size,
        least=1,
    )
    iterations = Option(
        20, "iterations (a choice: 20, as Parboil's default input, from memory)", least=1
    )
    ranges = Option(
        6,
        "ranges of 24,576 bins near the middle (a choice: what fits the default picture to 13.2 MB)",
        least=1,
    )

    @property
    def width(self) -> int:
        """Of the picture; even, so that no line is padded."""
        return 2 * max(
            1, round(WIDTH / 2 * (self.bytes / published_bytes("cppe", "cppe-HIS")) ** 0.5)
        )

    @property
    def height(self) -> int:
        return fitted(self.bytes, lambda height: _sizes(self.width, height, self.ranges))

    def sizes(self) -> dict[str, int]:
        return _sizes(self.width, self.height, self.ranges)

    def launches(self, space: Space) -> Iterator[Launch]:
        width, height = self.width, self.height
        pixels, (bins, middle) = width * height, _bins(width, height, self.ranges)
        sample = pixels // PRESCAN_BLOCKS // 8
        for _ in range(self.iterations):
            if sample:
                touches = stream(
                    space, _prescan, PRESCAN_BLOCKS, (pixels // PRESCAN_BLOCKS, sample)
                )
                yield Launch("histo_prescan_kernel", touches)
            yield Launch(
                "histo_intermediates_kernel",
                stream(space, _map, across(height, LINES), (width, height)),
            )
            count = PIECES * across(middle, RANGE)
            yield Launch("histo_main_kernel", stream(space, _count, count, (pixels, middle)))
            yield Launch("histo_final_kernel", stream(space, _final, FINAL_BLOCKS, (bins, middle)))


def _bins(width: int, height: int, ranges: int) -> tuple[int, int]:
    """Bins of the histogram, in fours, and those of them in ranges."""
    bins = 4 * max(1, width * height * BINS // HEIGHT // 4)
    return bins, min(bins, ranges * RANGE)


def _sizes(width: int, height: int, ranges: int) -> dict[str, int]:
    bins, middle = _bins(width, height, ranges)
    picture = FLOAT * width * height
    outside = max(FLOAT, 2 * (bins - middle))  # an object of no bytes there cannot be
    return dict(
        zip(ARRAYS, (picture, picture, PIECES * middle, outside, 4 * middle, bins), strict=True)
    )


@jit
def _prescan(log: Any, block: int, count: int, shape: Any) -> Any:
    stride, sample = shape
    while block < count and going(log):
        for _ in range(2):  # the mean, then the deviation
            step(log)
            use(log, _INPUT, FLOAT * stride * block, FLOAT * (stride * block + sample), False)
        block += closed(log)
    return block


@jit
def _map(log: Any, block: int, count: int, shape: Any) -> Any:
    width, height = shape
    while block < count and going(log):
        for line in range(LINES * block, min(height, LINES * (block + 1))):
            use(log, _INPUT, FLOAT * width * line, FLOAT * width * (line + 1), False)
            use(log, _MAPPINGS, FLOAT * width * line, FLOAT * width * (line + 1), True)
        block += closed(log)
    return block


@jit
def _count(log: Any, block: int, count: int, shape: Any) -> Any:
    pixels, middle = shape
    while block < count and going(log):
        x, y = block % PIECES, block // PIECES
        for at in range(THREADS * x, pixels, THREADS * PIECES):
            use(log, _MAPPINGS, FLOAT * at, FLOAT * min(pixels, at + THREADS), False)
        use(log, _SUB, middle * x + RANGE * y, middle * x + min(middle, RANGE * (y + 1)), True)
        block += closed(log)
    return block


@jit
def _final(log: Any, block: int, count: int, shape: Any) -> Any:
    bins, middle = shape
    low = (bins - middle) // 2 // 4 * 4
    four = 4 * FINAL_THREADS
    while block < count and going(log):
        for at in range(four * block, low, four * count):
            stop = min(low, at + four)
            use(log, _GLOBAL, 2 * at, 2 * stop, True)
            use(log, _FINAL, at, stop, True)
        for at in range(four * block, middle, four * count):
            stop = min(middle, at + four)
            use(log, _OVERFLOW, 4 * at, 4 * stop, True)
            for x in range(PIECES):
                use(log, _SUB, middle * x + at, middle * x + stop, False)
            use(log, _FINAL, low + at, low + stop, True)
        for at in range(low + four * block, bins - middle, four * count):
            stop = min(bins - middle, at + four)
            use(log, _GLOBAL, 2 * at, 2 * stop, True)
            use(log, _FINAL, middle + at, middle + stop, True)
        block += closed(log)
    return block
