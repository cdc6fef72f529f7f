"""NW: two sequences aligned; thread blocks sweep a matrix diagonal by diagonal."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt
from typing import Any

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.cppe.kernel import FLOAT, closed, going, rect, stream, use
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.suites import published_bytes

TILE = 16  # BLOCK_SIZE
_REFERENCE, _MATRIX = range(2)


@workload("cppe-NW")
class NeedlemanWunsch(Workload):
    """Needleman and Wunsch's alignment: nw of Rodinia, matrices of (rows + 1) × (cols + 1) ints,
    thread blocks of 16 × 16.

    A launch for each diagonal of tiles (x, y), from the upper left corner to the lower right, x
    rising; at = 16 cols' y + 16 x, cols' = cols + 1:

        load    matrix[at] (corner);  reference[at + cols' (ty + 1) + tx + 1];  matrix[at + cols' (tx + 1)] (left column);
                matrix[at + tx + 1] (row above)
        store   matrix[at + cols' (ty + 1) + tx + 1]

    The rows of 2,049 ints are just over two pages long, so a tile's pages are two apart: the
    table's stride of 2. References: 0 = reference, 1 = matrix. Table II: nw, 32 MB, Type III;
    Rodinia's sequences of 2048 make 32.0 MiB.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        published_bytes("cppe", "cppe-NW"),
        "size of both matrices together",
        parse=units.size,
        least=1,
    )

    @property
    def cols(self) -> int:
        """A multiple of 16, as Rodinia demands."""
        return TILE * max(1, (isqrt(self.bytes // 8) - 1) // TILE)

    @property
    def rows(self) -> int:
        """The same or, where that wastes bytes, a few tiles more."""
        return TILE * max(1, (self.bytes // (8 * (self.cols + 1)) - 1) // TILE)

    def sizes(self) -> dict[str, int]:
        size = FLOAT * (self.rows + 1) * (self.cols + 1)
        return {"reference": size, "matrix": size}

    def launches(self, space: Space) -> Iterator[Launch]:
        wide, tall = self.cols // TILE, self.rows // TILE
        for diagonal in range(wide + tall - 1):
            first, stop = max(0, diagonal - tall + 1), min(diagonal, wide - 1) + 1
            name = "needle_cuda_shared_1" if diagonal < wide else "needle_cuda_shared_2"
            yield Launch(name, stream(space, _needle, stop - first, (self.cols, diagonal, first)))


@jit
def _needle(log: Any, block: int, count: int, shape: Any) -> Any:
    cols, diagonal, first = shape
    pitch = cols + 1
    while block < count and going(log):
        x, y = first + block, diagonal - first - block
        rows, columns = (TILE * y + 1, TILE * y + TILE + 1), (TILE * x + 1, TILE * x + TILE + 1)
        corner = FLOAT * (pitch * TILE * y + TILE * x)
        use(log, _MATRIX, corner, corner + FLOAT, False)
        rect(log, _REFERENCE, pitch, rows, columns, False)
        rect(log, _MATRIX, pitch, rows, (columns[0] - 1, columns[0]), False)
        use(log, _MATRIX, corner + FLOAT, corner + FLOAT * (TILE + 1), False)
        rect(log, _MATRIX, pitch, rows, columns, True)
        block += closed(log)
    return block
