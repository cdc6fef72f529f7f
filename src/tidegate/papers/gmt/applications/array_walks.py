"""MultiVectorAdd, Hotspot, Srad, Backprop, Pathfinder and LavaMD: launches that walk through arrays
from end to end.

Page visits are the unit in which GMT counts reuse.

    Stretch(name, low, high, write)   bytes of an object that a launch walks through
    lockstep(space, stretches)        the launch: all stretches in step, from begin to end

GMT's reuse share is 1 - footprint / visits, and MultiVectorAdd's 40.0 % shows what a visit is: one
of a vector's pages counts once in a pass, though hundreds of warps use it, one after another. So
the thread blocks that share a page are one block here, and a page that the block before used as
well is still in use and not visited again. That is why the halo of a stencil makes no visits: it
lies in pages that neighbours use at the same time. Table 2 agrees: Srad's 83.38 % are 6.017 visits
a page, and without halos they are 6. A load and a store of a page in one step are one visit, too: a
launch of MultiVectorAdd counts ``out`` once, as BaM holds a page while a thread uses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.options import Option
from tidegate.papers.cppe.applications import learning, stencils
from tidegate.trace.build import SEGMENT_TOUCHES
from tidegate.trace.trace import Launch, Segment
from tidegate.workloads.program import Derived, Launches, Space, SquareMatrices, workload
from tidegate.workloads.suites import published_footprint


class Stretch(NamedTuple):
    """Bytes ``low`` to ``high`` of an object, written or only read."""

    name: str
    low: int
    high: int
    write: bool = False


def whole_objects(
    space: Space, kernel: str, reads: Sequence[str], writes: Sequence[str], thread_block: int
) -> Launch:
    """Return a launch over whole objects, ``thread_block`` bytes of each to a thread block."""
    names = (*reads, *writes)
    stretches = [Stretch(name, 0, space[name].bytes, name in writes) for name in names]
    return Launch(kernel, lockstep(space, stretches), merged_width(space, thread_block))


def merged_width(space: Space, thread_block: int) -> int:
    """Return the thread blocks to a block, for ``thread_block`` bytes of every stretch."""
    return max(1, space.geometry.page // thread_block)


def lockstep(space: Space, stretches: Sequence[Stretch]) -> Iterator[Segment]:
    """Walk through all stretches in step, a page of the longest at a time; each step is a block.

    A page is visited in the step that first uses it. An object's access site is its place in the
    space.
    """
    page = space.geometry.page
    steps = -(-max(s.high - s.low for s in stretches) // page)
    rows = max(1, SEGMENT_TOUCHES // (2 * len(stretches)))
    for first in range(0, steps, rows):
        last = min(first + rows, steps)
        parts = [_visits(space, stretch, steps, first, last) for stretch in stretches]
        step, number, write, used, site = map(np.concatenate, zip(*parts, strict=True))
        # stretches that are shorter than a page may share one, which is one visit
        _, at, same = np.unique(step * 2**31 + number, return_index=True, return_inverse=True)
        order = np.lexsort((at, step[at]))
        used = np.bincount(same, used)[order].astype(np.int32)
        write = np.bincount(same, write)[order] > 0
        at = at[order]
        starts = np.searchsorted(step[at], np.arange(first, last + 1))
        yield Segment(np.unique(starts), number[at], write.astype(np.uint8), used, site[at])


def _visits(
    space: Space, stretch: Stretch, steps: int, first: int, last: int
) -> tuple[NDArray[np.int64], ...]:
    """Return the visits of a stretch in steps ``first`` to ``last``.

    That is step, page, write, bytes and access site of each.
    """
    page, owner, length = space.geometry.page, space[stretch.name], stretch.high - stretch.low
    # a step uses 1 / steps of the stretch; pages entered before or after are left out below
    low = stretch.low + -(-first * length // steps)
    high = min(stretch.high - 1, stretch.low + last * length // steps)
    numbers = np.arange(low // page, high // page + 1)
    begins = np.maximum(numbers * page, stretch.low)
    ends = np.minimum((numbers + 1) * page, stretch.high)
    step = (begins - stretch.low) * steps // length
    mine = (step >= first) & (step < last)
    columns = step, owner.first_page + numbers, np.full_like(step, stretch.write), ends - begins
    site = np.full(mine.sum(), list(space).index(stretch.name))
    return *(column[mine] for column in columns), site


_SUMMANDS_BYTES = 128 * 8  # bytes: a thread adds 8, and BaM's scripts start 128 threads


@workload("gmt-MultiVectorAdd")
class MultiVectorAdd(Derived):
    """A sum of vectors, one launch each: ``out[i] += in_k[i]``.

    Operands: the inputs, each used once, and the output, read and written by every launch. Grid
    order: i. Access sites: the vectors as they are allocated. Table 2: reuse 40.0 %, I/O 267 GB.
    Five inputs make exactly that: 10 visits for 6 vectors, and 267 GB / 10 * 6 = 160 GB, twice the
    tiers' 16 + 64. But the output then returns after 53 GB, within both tiers, and 3.3 says that
    TierOrder does not find it there. With two or three inputs it returns after 107 or 80 GB.
    """

    bytes = published_footprint("gmt-MultiVectorAdd", "size of all vectors")
    inputs = Option(5, "vectors that are added up (a choice: 5, from Table 2's 40.0 %)", least=1)

    def sizes(self) -> dict[str, int]:
        names = [f"in_{k}" for k in range(self.inputs)]
        return dict.fromkeys([*names, "out"], self.bytes // (8 * (self.inputs + 1)) * 8)

    def launches(self, space: Space) -> Launches:
        for k in range(self.inputs):
            yield whole_objects(space, "add", [f"in_{k}"], ["out"], _SUMMANDS_BYTES)


_TILE_BYTES = 16 * 16 * 4  # bytes of each matrix


@workload("gmt-Hotspot")
class Hotspot(SquareMatrices):
    """Heat on an n × n grid of floats: hotspot of Rodinia, thread blocks of 16 × 16.

        load    temp_src[p], power[p] and the neighbours of p;   store   temp_dst[p]

    Operands: both temperatures, which change places after every launch, and the power. Grid order:
    from the first row to the last; halos make no visits (see the module). Access sites: 0, 1 =
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
            yield whole_objects(space, "calculate_temp", reads, writes, _TILE_BYTES)


@workload("gmt-Srad")
class Srad(stencils.Srad):
    """Speckle-reducing anisotropic diffusion: ``cppe-SRD`` (srad_v2 of Rodinia) as page visits.

    At each point p of an n × n picture of floats, with its neighbours n, s, w, e; two launches an
    iteration:

        srad_cuda_1   N, S, W, E[p] = J[n], J[s], J[w], J[e] - J[p];  C[p] = f(those, J[p])
        srad_cuda_2   J[p] += λ (C[p] N[p] + C[s] S[p] + C[p] W[p] + C[e] E[p])

    Operands: six matrices. Grid order: from the first row to the last; halos make no visits.
    Access sites: the matrices as they are allocated. Table 2: reuse 83.38 %, I/O
    270 GB. Three iterations visit a page 6 times, 83.33 %; the footprint is then 45 GB. That is
    less than the tiers' 80 GB, although 3.1 says all applications have twice as much.
    """

    bytes = published_footprint("gmt-Srad", "size of the six matrices")
    iterations = Option(3, "iterations (a choice: 3, from Table 2's 83.38 %)", least=1)

    def launches(self, space: Space) -> Launches:
        for _ in range(self.iterations):
            yield whole_objects(space, "srad_cuda_1", "J", "CEWSN", _TILE_BYTES)
            yield whole_objects(space, "srad_cuda_2", "CNSWE", "J", _TILE_BYTES)


_UNITS_BYTES = learning.TILE * (learning.HIDDEN + 1) * 4  # bytes of the weights


@workload("gmt-Backprop")
class Backprop(learning.Backprop):
    """Back-propagation through a layer: ``cppe-BKP`` (backprop of Rodinia) as page visits.

    A layer of 16 hidden units, thread blocks of 16 × 16, by = 0, 1, …

        layerforward     input_hidden[16 by …] *= input[16 by …];  hidden_partial_sum[16 by …] = Σ
        adjust_weights   w[16 by …] += f(delta, input[16 by …], oldw[16 by …]);  oldw is written

    Operands: the weights and their last change, the input units, and small vectors. Grid order: by.
    Access sites: the arrays as they are allocated. The host's work between launches is left out,
    and so is ``output_hidden``, which is not used.

    Table 2: reuse 93.54 %, I/O 6823 GB. An epoch visits the weights twice and their last change
    once, so ten epochs make 93.3 %. Table 2's footprint would be 441 GB, far more than twice the
    tiers' 80 GB, and distances of half of it or more would be Tier-3's; 3.3 says Tier-2's. A page
    comes back after half to all of the footprint W, so its remaining distance is W/2 - 16 to W - 16
    GB; that is Tier-2's (16 to 80) for W from 64 to 96, and 80 lies in the middle.
    """

    bytes = published_footprint(
        "gmt-Backprop",
        "size of the six arrays (a choice: Tier-1 + Tier-2, which puts the remaining distances in "
        "Tier-2)",
    )
    iterations = Option(10, "epochs (a choice: 10, from Table 2's 93.54 %)", least=1)

    def launches(self, space: Space) -> Launches:
        sums, weights = ("input_hidden", "hidden_partial_sum"), "bpnn_adjust_weights_cuda"
        reads, writes = ("hidden_delta", "input"), ("input_prev_weights", "input_hidden")
        for _ in range(self.iterations):
            yield whole_objects(space, "bpnn_layerforward_CUDA", ["input"], sums, _UNITS_BYTES)
            yield whole_objects(space, weights, reads, writes, _UNITS_BYTES)


INT = 4
_ROW_BYTES = 256 * INT  # bytes of each row


@workload("gmt-Pathfinder")
class Pathfinder(Derived):
    """The cheapest path down a grid of ints: pathfinder of Rodinia, ``pyramid`` rows in a launch.

        dst[x] = the least of src[x - pyramid … x + pyramid] plus what lies between, row by row

    Operands: the wall, used once, and two result rows, which change places after every launch. Grid
    order: from left to right; halos make no visits (see the module). Access sites: 0, 1 = the
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
        row, width = self.row, merged_width(space, _ROW_BYTES)
        for launch in range(self.iterations):
            rows = range(self.pyramid * launch, self.pyramid * (launch + 1))
            stretches = [Stretch(f"result_{launch % 2}", 0, row)]
            stretches += [Stretch("wall", row * r, row * (r + 1)) for r in rows]
            stretches += [Stretch(f"result_{1 - launch % 2}", 0, row, write=True)]
            yield Launch("dynproc_kernel", lockstep(space, stretches), width)


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
