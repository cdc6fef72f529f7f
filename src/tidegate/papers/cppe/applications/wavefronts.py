"""PAT and NW: dynamic programming on a matrix, launch by launch along rows or diagonals."""

from __future__ import annotations

from math import isqrt
from typing import Any

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.workloads.program import Derived, Launches, Space, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import FLOAT, blocks, launch_of, use_floats, use_rect

THREADS = 256  # BLOCK_SIZE
_RESULT, _WALL = 0, 2  # the first of two rows; the wall, allocated last


@workload("cppe-PAT")
class Pathfinder(Derived):
    """The cheapest path down a grid of rows × cols ints: pathfinder of Rodinia, 256 threads.

    With ``pyramid`` rows in a launch:

        small = 256 - 2 * steps;  x = small * bx - pyramid + tx
        load    src[x];  for i in 0 … steps - 1:  wall[cols (done + i) + x]
                                                       for i < tx < 255 - i, 0 <= x < cols
        store   dst[x]                                 for steps <= tx < 256 - steps

    Operands: the wall (all rows but the first) and two result rows, which change places; the first
    row begins as the source. Grid order: from left to right. Access sites: 0, 1 = the result rows,
    2 = wall. Table II: pathfinder, 38.5 MB, Type II; Rodinia's 100 rows of 100,000 make 38.5 MiB.
    """

    bytes = published_footprint("cppe-PAT", "size of the wall and both rows")
    rows = Option(100, "rows of the wall (a choice: 100, as in Rodinia's script)", least=2)
    pyramid = Option(
        20, "rows in a launch (a choice: 20, as in Rodinia's script)", least=1, most=100
    )

    @property
    def cols(self) -> int:
        """Columns of the wall."""
        return max(1, self.bytes // (FLOAT * (self.rows + 1)))

    def sizes(self) -> dict[str, int]:
        row = FLOAT * self.cols
        return {"result_0": row, "result_1": row, "wall": row * (self.rows - 1)}

    def launches(self, space: Space) -> Launches:
        count = -(-self.cols // (THREADS - 2 * self.pyramid))
        for launch, done in enumerate(range(0, self.rows - 1, self.pyramid)):
            steps = min(self.pyramid, self.rows - 1 - done)
            shape = (self.cols, done, steps, self.pyramid, launch % 2)
            yield launch_of(space, "dynproc_kernel", _dynproc, count, shape)


@jit
def _dynproc(log: Any, count: int, shape: Any) -> None:
    cols, done, steps, border, source = shape
    small = THREADS - 2 * steps
    for block in blocks(log, count):
        left = small * block - border
        right = min(cols, left + THREADS)
        use_floats(log, _RESULT + source, max(0, left), right, False)
        for i in range(steps):
            row, stop = cols * (done + i), min(cols, left + THREADS - i - 1)
            use_floats(log, _WALL, row + max(0, left + i + 1), row + stop, False)
        low, high = max(0, left + steps), min(cols, left + steps + small)
        use_floats(log, _RESULT + 1 - source, low, high, True)


TILE = 16  # BLOCK_SIZE
_SCORES, _MATRIX = range(2)


@workload("cppe-NW")
class NeedlemanWunsch(Derived):
    """Needleman and Wunsch's alignment: nw of Rodinia, matrices of (rows + 1) × (cols + 1) ints.

    Thread blocks have 16 × 16 threads. A launch for each diagonal of tiles (x, y), from the upper
    left corner to the lower right, x rising; at = 16 cols' y + 16 x, cols' = cols + 1:

        load    matrix[at] (corner);  reference[at + cols' (ty + 1) + tx + 1];
                matrix[at + cols' (tx + 1)] (left column);  matrix[at + tx + 1] (row above)
        store   matrix[at + cols' (ty + 1) + tx + 1]

    The rows of 2,049 ints are just over two pages long, so a tile's pages are two apart: the
    table's stride of 2. Access sites: 0 = reference (the scores), 1 = matrix. Table II: nw, 32 MB,
    Type III; Rodinia's sequences of 2048 make 32.0 MiB.
    """

    bytes = published_footprint("cppe-NW", "size of both matrices together")

    @property
    def cols(self) -> int:
        """A multiple of 16, as Rodinia requires."""
        return TILE * max(1, (isqrt(self.bytes // 8) - 1) // TILE)

    @property
    def rows(self) -> int:
        """As many, or a few tiles more where that wastes bytes."""
        return TILE * max(1, (self.bytes // (8 * (self.cols + 1)) - 1) // TILE)

    def sizes(self) -> dict[str, int]:
        size = FLOAT * (self.rows + 1) * (self.cols + 1)
        return {"reference": size, "matrix": size}

    def launches(self, space: Space) -> Launches:
        wide, tall = self.cols // TILE, self.rows // TILE
        for diagonal in range(wide + tall - 1):
            first, stop = max(0, diagonal - tall + 1), min(diagonal, wide - 1) + 1
            name = "needle_cuda_shared_1" if diagonal < wide else "needle_cuda_shared_2"
            shape = (self.cols, diagonal, first)
            yield launch_of(space, name, _needle, stop - first, shape)


@jit
def _needle(log: Any, count: int, shape: Any) -> None:
    cols, diagonal, first = shape
    pitch = cols + 1
    for block in blocks(log, count):
        x, y = first + block, diagonal - first - block
        rows, columns = (TILE * y + 1, TILE * y + TILE + 1), (TILE * x + 1, TILE * x + TILE + 1)
        corner = pitch * TILE * y + TILE * x
        use_floats(log, _MATRIX, corner, corner + 1, False)
        use_rect(log, _SCORES, pitch, rows, columns, False)
        use_rect(log, _MATRIX, pitch, rows, (columns[0] - 1, columns[0]), False)
        use_floats(log, _MATRIX, corner + 1, corner + TILE + 1, False)
        use_rect(log, _MATRIX, pitch, rows, columns, True)
