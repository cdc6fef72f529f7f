"""PAT: the cheapest path through a wall, twenty rows a launch; the wall streams, a row stays."""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.workloads.program import Derived, Launches, Space, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import FLOAT, blocks, launch_of, use_floats

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
