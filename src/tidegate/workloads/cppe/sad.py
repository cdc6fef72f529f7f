"""SAD: differences of picture blocks, first of 4 × 4 pixels, then summed up to 16 × 16."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.cppe.kernel import closed, fitted, going, stream, use
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.suites import published_bytes

SHORT = 2  # bytes
POSITIONS = 1096  # MAX_POS_PADDED: the 33 × 33 places searched, padded
_USED = 2 * (1089 + 1)  # bytes of them that the two larger kernels read and write
ACROSS = 11  # macroblocks of a row: 176 pixels, QCIF
_SIDE = 16  # pixels of a macroblock
_CUR, _SADS = range(2)
# where the sums of each size begin, in macroblocks' vectors: SAD_TYPE_1_IX to 7
_TYPES = (0, 1, 3, 5, 9, 17, 25)


@workload("cppe-SAD")
class SAD(Workload):
    """Sums of absolute differences for motion search: sad of Parboil, on a picture 11 macroblocks
    (16 × 16 pixels) wide.

    Vectors of 1096 shorts, 41 to a macroblock m, all of one size together, the largest (type 1)
    first:

        mb_sad_calc          a thread block per 4 × 4 pixels:  reads them;  writes vector 16 m + 4 (y % 4) + x % 4 of type 7
        larger_sad_calc_8    one per macroblock:  reads its 16 of type 7;  writes 8 of type 6, 8 of type 5, 4 of type 4
        larger_sad_calc_16   one per macroblock:  reads its 4 of type 4;  writes 2 of type 3, 2 of type 2, 1 of type 1

    Grid order: blockIdx.x fastest, along the rows of the picture, so mb_sad_calc comes back to each
    macroblock four times. The reference picture is a texture's array, which is not managed, and
    left out. References: 0 = the picture, 1 = the vectors. Table II: sad, 8.5 MB, Type II; the 99
    macroblocks of Parboil's default input, 176 × 144 pixels, make 8.5 MiB.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        published_bytes("cppe", "cppe-SAD"),
        "size of the picture and all vectors",
        parse=units.size,
        least=1,
    )

    @property
    def macroblocks(self) -> int:
        """Those of the last row may be fewer than the picture has room for."""
        return fitted(self.bytes, _sizes)

    def sizes(self) -> dict[str, int]:
        return _sizes(self.macroblocks)

    def launches(self, space: Space) -> Iterator[Launch]:
        n = self.macroblocks
        yield Launch("mb_sad_calc", stream(space, _calc, 16 * ACROSS * -(-n // ACROSS), (n,)))
        yield Launch("larger_sad_calc_8", stream(space, _calc_8, n, (n,)))
        yield Launch("larger_sad_calc_16", stream(space, _calc_16, n, (n,)))


def _sizes(macroblocks: int) -> dict[str, int]:
    picture = SHORT * _SIDE**2 * ACROSS * -(-macroblocks // ACROSS)
    return {"cur": picture, "sads": SHORT * 41 * POSITIONS * macroblocks}


@jit
def _vectors(log: Any, kind: int, n: int, macroblock: int, each: int, write: bool) -> None:
    """A macroblock's vectors of one size, ``each`` to a macroblock."""
    for i in range(each):
        at = SHORT * POSITIONS * (_TYPES[kind - 1] * n + each * macroblock + i)
        use(log, _SADS, at, at + _USED, write)


@jit
def _calc(log: Any, block: int, count: int, shape: Any) -> Any:
    n = shape[0]
    while block < count and going(log):
        x, y = block % (4 * ACROSS), block // (4 * ACROSS)
        macroblock = y // 4 * ACROSS + x // 4
        if macroblock < n:
            for row in range(4 * y, 4 * y + 4):
                at = SHORT * (row * ACROSS * _SIDE + 4 * x)
                use(log, _CUR, at, at + SHORT * 4, False)
            at = SHORT * POSITIONS * (_TYPES[6] * n + 16 * macroblock + 4 * (y % 4) + x % 4)
            use(log, _SADS, at, at + SHORT * POSITIONS, True)
        block += closed(log)
    return block


@jit
def _calc_8(log: Any, block: int, count: int, shape: Any) -> Any:
    n = shape[0]
    while block < count and going(log):
        _vectors(log, 7, n, block, 16, False)
        _vectors(log, 6, n, block, 8, True)
        _vectors(log, 5, n, block, 8, True)
        _vectors(log, 4, n, block, 4, True)
        block += closed(log)
    return block


@jit
def _calc_16(log: Any, block: int, count: int, shape: Any) -> Any:
    n = shape[0]
    while block < count and going(log):
        _vectors(log, 4, n, block, 4, False)
        _vectors(log, 3, n, block, 2, True)
        _vectors(log, 2, n, block, 2, True)
        _vectors(log, 1, n, block, 1, True)
        block += closed(log)
    return block
