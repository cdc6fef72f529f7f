"""SAD: differences of picture blocks, first of 4 × 4 pixels, then summed up to 16 × 16."""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit
from tidegate.workloads.program import Derived, Launches, Space, largest_fit, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import across, blocks, launch_of, step, use

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
