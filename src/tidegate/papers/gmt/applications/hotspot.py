"""Hotspot: the heat of a chip; every time step walks through three matrices."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.papers.gmt.applications.page_visits import whole_objects
from tidegate.workloads.program import Launches, Space, SquareMatrices, workload
from tidegate.workloads.suites import published_footprint

_THREAD_BLOCK = 16 * 16 * 4  # bytes of each matrix


@workload("gmt-Hotspot")
class Hotspot(SquareMatrices):
    """Heat on an n × n grid of floats: hotspot of Rodinia, thread blocks of 16 × 16.

        load    temp_src[p], power[p] and the neighbours of p;   store   temp_dst[p]

    Operands: both temperatures, which change places after every launch, and the power. Grid order:
    from the first row to the last; halos make no visits (see ``page_visits``). Access sites: 0, 1 =
    the temperatures, 2 = power. Table 2: reuse 81.33 %, I/O 1492 GB, so 5.36 visits a page and 279
    GB. Five launches make 5 visits and 80 %, six 83.3 %. A cyclic walk through 279 GB puts all
    reuse in Tier-3, as 3.3 says, but then 80 GB of tiers save at most 80 / 279 of the reads; the 73
    % that 3.3 says, too, would need a footprint not much larger than the tiers (``bytes``).
    """

    arrays = ("temp_0", "temp_1", "power")
    bytes = published_footprint("gmt-Hotspot", "size of the three matrices")
    iterations = Option(5, "launches (a choice: 5, the nearest to Table 2's 81.33 %)", least=1)

    def launches(self, space: Space) -> Launches:
        for launch in range(self.iterations):
            reads, writes = [f"temp_{launch % 2}", "power"], [f"temp_{1 - launch % 2}"]
            yield whole_objects(space, "calculate_temp", reads, writes, _THREAD_BLOCK)
