"""PAT: the cheapest way through a wall, twenty rows of it at a time; the wall streams, the last row
stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.cppe.kernel import FLOAT, closed, going, stream, use
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.suites import published_bytes

THREADS = 256  # BLOCK_SIZE
_RESULT, _WALL = 0, 2  # the first of two rows; the wall, allocated last


@workload("cppe-PAT")
class Pathfinder(Workload):
    """The cheapest way down a grid of rows × cols ints: pathfinder of Rodinia, 256 threads,
    ``pyramid`` rows in a launch.

        small = 256 - 2 * steps;  x = small * bx - pyramid + tx
        load    src[x];  for i in 0 … steps - 1:  wall[cols (done + i) + x]      for i < tx < 255 - i, 0 <= x < cols
        store   dst[x]                                                           for steps <= tx < 256 - steps

    Operands: the wall (all rows but the first) and two result rows, which change places; the first
    row begins as the source. Grid order: from left to right. References: 0, 1 = the result rows, 2
    = wall. Table II: pathfinder, 38.5 MB, Type II; Rodinia's 100 rows of 100,000 make 38.5 MiB.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        published_bytes("cppe", "cppe-PAT"),
        "size of the wall and both rows",
        parse=units.size,
        least=1,
    )
    rows = Option(100, "rows of the wall (a choice: 100, as Rodinia's script)", least=2)
    pyramid = Option(20, "rows in a launch (a choice: 20, as Rodinia's script)", least=1, most=100)

    @property
    def cols(self) -> int:
        """Columns of the wall."""
        return max(1, self.bytes // (FLOAT * (self.rows + 1)))

    def sizes(self) -> dict[str, int]:
        row = FLOAT * self.cols
        return {"result_0": row, "result_1": row, "wall": row * (self.rows - 1)}

    def launches(self, space: Space) -> Iterator[Launch]:
        count = -(-self.cols // (THREADS - 2 * self.pyramid))
        for launch, done in enumerate(range(0, self.rows - 1, self.pyramid)):
            steps = min(self.pyramid, self.rows - 1 - done)
            shape = (self.cols, done, steps, self.pyramid, launch % 2)
            yield Launch("dynproc_kernel", stream(space, _dynproc, count, shape))


@jit
def _dynproc(log: Any, block: int, count: int, shape: Any) -> Any:
    cols, done, steps, border, source = shape
    small = THREADS - 2 * steps
    while block < count and going(log):
        left = small * block - border
        right = min(cols, left + THREADS)
        use(log, _RESULT + source, FLOAT * max(0, left), FLOAT * right, False)
        for i in range(steps):
            at, stop = max(0, left + i + 1), min(cols, left + THREADS - i - 1)
            use(
                log,
                _WALL,
                FLOAT * (cols * (done + i) + at),
                FLOAT * (cols * (done + i) + stop),
                False,
            )
        low, high = max(0, left + steps), min(cols, left + steps + small)
        use(log, _RESULT + 1 - source, FLOAT * low, FLOAT * high, True)
        block += closed(log)
    return block
