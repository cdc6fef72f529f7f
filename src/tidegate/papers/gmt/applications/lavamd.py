"""LavaMD: particles in boxes, each box against its neighbours; nearly a stream."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.options import Option
from tidegate.papers.gmt.applications.page_visits import Stretch, lockstep, merged_width
from tidegate.trace.trace import Launch, Segment
from tidegate.workloads.program import Derived, Launches, Space, workload
from tidegate.workloads.suites import published_footprint

PARTICLES = 100  # to a box
# bytes of a box: its place and its neighbours' (box_str), positions, charges, forces; all numbers
# are doubles
BOX = {"box": 656, "rv": 4 * 8 * PARTICLES, "qv": 8 * PARTICLES, "fv": 4 * 8 * PARTICLES}


@workload("gmt-LavaMD")
class LavaMD(Derived):
    """Forces between particles: lavaMD of Rodinia, a thread block per box.

    Boxes are ``side`` × ``side`` × any number:

        for k in home, neighbours of home:             boxes that touch, at most 26
            fv[home] += f(rv[home], rv[k], qv[k])

    Operands: boxes, positions, charges, forces, in order of boxes. Grid order: boxes, x fastest,
    ``wave`` at a time: within a wave a page is visited once. Access sites: the arrays as they are
    allocated.

    Table 2: reuse 1.17 %, I/O 168 GB, so 166 GB are used once and little comes back, within Tier-1.
    Rodinia's boxes fill a cube. In a cube of 166 GB a plane has 0.6 GB, every page would be visited
    at least three times, and reuse would be over 67 %. Table 2's needs neighbours that lie close
    together: a bar of boxes, where only the waves' ends meet.
    """

    bytes = published_footprint("gmt-LavaMD", "size of the four arrays")
    side = Option(5, "boxes across and up (a choice: from Table 2's 1.17 %)", least=1)
    wave = Option(4096, "boxes processed together (a choice: from Table 2's 1.17 %)", least=1)

    @property
    def boxes(self) -> int:
        return max(1, self.bytes // sum(BOX.values()))

    def sizes(self) -> dict[str, int]:
        return {name: size * self.boxes for name, size in BOX.items()}

    def launches(self, space: Space) -> Launches:
        yield Launch("kernel_gpu_cuda", self._waves(space), merged_width(space, BOX["rv"]))

    def _waves(self, space: Space) -> Iterator[Segment]:
        # a box at the bar's edge has fewer neighbours; then one beside it, within a plane, reaches
        # farther
        beside = self.side**2
        for low in range(0, self.boxes, self.wave):
            high = min(low + self.wave, self.boxes)
            first = min(self._farthest(home, -1) for home in range(low, min(high, low + beside)))
            stop = max(self._farthest(home, 1) for home in range(max(low, high - beside), high)) + 1
            ends = {"box": (low, high), "rv": (first, stop), "qv": (first, stop), "fv": (low, high)}
            stretches = [
                Stretch(name, BOX[name] * a, BOX[name] * b, name == "fv")
                for name, (a, b) in ends.items()
            ]
            yield from lockstep(space, stretches)

    def _farthest(self, home: int, way: int) -> int:
        """Return the farthest neighbour of a box, before (-1) or after (1) it, or itself."""
        side, farthest = self.side, home
        place = home % side, home // side % side, home // side**2
        counts = side, side, -(-self.boxes // side**2)
        for axis, (at, count) in enumerate(zip(place, counts, strict=True)):
            if 0 <= at + way < count:
                farthest += way * side**axis
        return min(farthest, self.boxes - 1)
