"""Pathfinder: the cheapest path through a wall; the wall streams, the two result rows return."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.papers.gmt.applications.page_visits import Stretch, lockstep, merged_width
from tidegate.trace.trace import Launch
from tidegate.workloads.program import Derived, Launches, Space, workload
from tidegate.workloads.suites import published_footprint

INT = 4
_THREAD_BLOCK = 256 * INT  # bytes of each row


@workload("gmt-Pathfinder")
class Pathfinder(Derived):
    """The cheapest path down a grid of ints: pathfinder of Rodinia, ``pyramid`` rows in a launch.

        dst[x] = the least of src[x - pyramid … x + pyramid] plus what lies between, row by row

    Operands: the wall, used once, and two result rows, which change places after every launch. Grid
    order: from left to right; halos make no visits (see ``page_visits``). Access sites: 0, 1 = the
    result rows, 2 = wall.

    Table 2: reuse 19.47 %, I/O 202 GB. With p rows in each of L launches that is 2 (1 - 1/L) / (p +
    2), where the result rows come back after p + 2 rows. They are read again, and 3.3 has 99.99 %
    of the remaining distances in Tier-1, so p + 2 rows are between 16 and 32 GB, and all rows are
    163 GB: p = 7 and L = 8 make 19.44 % and 25 GB. (p = 8 and L = 38 make 19.47 %, but then p + 2
    rows are 5 GB and would never leave Tier-1, and the I/O would be the footprint.)
    """

    bytes = published_footprint("gmt-Pathfinder", "size of the wall and both rows")
    pyramid = Option(
        7, "rows of the wall in a launch (a choice: 7, from Table 2 and the distances)", least=1
    )
    iterations = Option(
        8, "launches (a choice: 8, from Table 2 and the remaining distances)", least=1
    )

    @property
    def row(self) -> int:
        """Bytes of a row."""
        return self.bytes // (INT * (self.pyramid * self.iterations + 2)) * INT

    def sizes(self) -> dict[str, int]:
        wall = self.row * self.pyramid * self.iterations
        return {"result_0": self.row, "result_1": self.row, "wall": wall}

    def launches(self, space: Space) -> Launches:
        row, width = self.row, merged_width(space, _THREAD_BLOCK)
        for launch in range(self.iterations):
            rows = range(self.pyramid * launch, self.pyramid * (launch + 1))
            stretches = [Stretch(f"result_{launch % 2}", 0, row)]
            stretches += [Stretch("wall", row * r, row * (r + 1)) for r in rows]
            stretches += [Stretch(f"result_{1 - launch % 2}", 0, row, write=True)]
            yield Launch("dynproc_kernel", lockstep(space, stretches), width)
