"""SPM: a sparse matrix times a dense one; column indices say which rows of the dense one are
gathered.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance, Segment
from tidegate.workloads.draw import Zipf, generator
from tidegate.workloads.graph import below
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.suites import published_bytes
from tidegate.workloads.wave import Columns, Matrix, deal, stretch, waves

WARP = 32  # non-zeros that are read at a time
ROWS = 8  # of a thread block: 256 threads, a warp for each row
_COARSE = 64  # rows of B that are looked through together
# bytes: so much of what was found out about waves is kept for the next column of tiles
_KEPT = 64 << 20
_DRAWN = 1 << 20  # random numbers at a time
_TRIES = 64


@workload("SPM")
class SpMM(Workload):
    """C = A·B: cusparseSpMM of an m × m CSR matrix A with a dense m × n matrix B, floats, 32-bit
    indices; really gathered.

    NVIDIA's sample (CUDALibrarySamples, spmm_csr) has B and C column-major and calls
    CUSPARSE_SPMM_ALG_DEFAULT; for that layout cuSPARSE's documentation recommends CSR_ALG1. Its
    kernel is not public. This is the usual one for that layout, a warp to a row of A and a lane to
    a column of B (rocSPARSE's csrmmnn, whose interface follows cuSPARSE's):

        row = 8 blockIdx.x + warp;  col = 32 blockIdx.y + lane
        for j = offsets[row], + 32, … < offsets[row + 1]:
            k[lane], v[lane] = columns[j + lane], values[j + lane]
            for i in 0 … 31:  sum += v[i] · B[k[i] + col·m]
        C[row + col·m] = sum

    Blocks are taken with blockIdx.x fastest, so a column of tiles is worked off before the next: A
    is streamed for each, and all of B's and C's columns come once. The ``wave`` blocks that are
    resident together walk in step; what they need is one list of pages, each once, in the order of
    the non-zeros (32 a step) that ask for it, with the bytes of it that they use in all, dealt over
    ``lanes`` blocks. Waves end with a column of tiles. References: 0 = offsets, 1 = columns, 2 =
    values, 3 = B, 4 = C.

    The touches are *derived*: A is made here, from a seed. The paper gives 8.0 GB and no shapes.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        published_bytes("observuvm", "SPM"),
        "size of the matrices together",
        parse=units.size,
        least=1,
    )
    density = Option(
        0.01, "share of A that is not zero (a choice)", parse=units.fraction, least=1e-9, most=1
    )
    aspect = Option(
        1.0,
        "columns of B and C for each row of A (a choice: all are square, as the paper's other matrices)",
        parse=units.fraction,
        least=1e-9,
    )
    skew = Option(
        0.0,
        "a choice: exponent of Zipf's law for row lengths and columns of A; 0 is uniform",
        least=0,
    )
    tile = Option(32, "columns of B of a thread block (a choice: a lane each)", least=1)
    fastest = Option(
        "rows",
        "whether the next block has the next rows or the next columns (a choice: the usual way)",
        choices=("rows", "columns"),
    )
    iterations = Option(
        1, "how often the product is called (a choice: once, as in NVIDIA's sample)", least=1
    )
    wave = Option(656, "thread blocks resident together; 656 are 82 SMs with 8 each", least=1)
    lanes = Option(16, "blocks that a wave is dealt over", least=1)
    # L, low confidence: a guess, named so that it can be varied.
    efficiency = Option(
        0.02,
        "share of peak FP32 that the kernel reaches (a guess)",
        parse=units.fraction,
        least=0.001,
        most=1,
    )
    seed = Option(1, "of A", least=0)

    @property
    def m(self) -> int:
        """Rows of A, B and C, and columns of A: as many as fit."""
        low, high = 0, 2 + int((self.bytes / (8 * self.density)) ** 0.5)  # fits; does not
        while high - low > 1:
            middle = (low + high) // 2
            if sum(self._sizes(middle).values()) <= self.bytes:
                low = middle
            else:
                high = middle
        return low

    def sizes(self) -> dict[str, int]:
        return self._sizes(self.m)

    def _sizes(self, m: int) -> dict[str, int]:
        nonzeros, dense = self._nonzeros(m), 4 * m * self._columns(m)
        return {
            "offsets": 4 * (m + 1) if m else 0,
            "columns": 4 * nonzeros,
            "values": 4 * nonzeros,
            "B": dense,
            "C": dense,
        }

    def _nonzeros(self, m: int) -> int:
        return max(min(m, 1), int(self.density * m * m))

    def _columns(self, m: int) -> int:
        return max(1, int(self.aspect * m))

    def sparse(self) -> Sparse:
        """A."""
        return _sparse(self.m, self._nonzeros(self.m), self.skew, self.seed)

    def launches(self, space: Space) -> Iterator[Launch]:
        plan = self._plan()
        a, n = self.sparse(), self._columns(self.m)
        found = functools.lru_cache(max(1, _KEPT // (8 * plan.m)))(
            lambda top, bottom: _gathered(a, top, bottom)
        )
        intensity = 2 * len(a.columns) * n / _bytes_touched(plan, a, found) / self.efficiency
        lanes = min(self.lanes, plan.wave)
        for _ in range(self.iterations):
            yield Launch(
                "csrmm", self._touches(space, plan, a, found, lanes), plan.wave // lanes, intensity
            )

    def _plan(self) -> Plan:
        m, n = self.m, self._columns(self.m)
        groups, tiles = -(-m // ROWS), -(-n // self.tile)
        return Plan(
            m, n, self.tile, groups, tiles, min(self.wave, groups * tiles), self.fastest == "rows"
        )

    def _touches(
        self, space: Space, plan: Plan, a: Sparse, found: Any, lanes: int
    ) -> Iterator[Segment]:
        page, pitch = space.geometry.page, 4 * plan.m  # of a column
        offsets, columns, values, b, c = (
            Matrix(o.first_page, page, pitch, reference, int(o.name == "C"))
            for reference, o in enumerate(space.values())
        )
        last = 2 + 2 * -(-int(np.diff(a.offsets).max()) // WARP)  # the step in which C is written

        def fill(
            room: Columns, needs: NDArray[Any], wave: int, enough: int
        ) -> tuple[int, int, int]:
            block = touch = 0
            while wave < plan.count and touch < enough:
                top, bottom, left, right = plan.extent(wave)
                end = _need_a(needs, a, top, bottom, offsets, columns, values)
                end = _need_b(needs, end, b, left, right, found(top, bottom))
                end = _need_c(needs, end, c, top, bottom, left, right, last)
                block, touch = deal(needs, end, last + 1, lanes, room, block, touch)
                wave += 1
            return wave, block, touch

        yield from waves(plan.count, sum(o.pages for o in space.values()), fill)


@dataclass(frozen=True)
class Plan:
    """The grid of thread blocks, and how it is cut into waves: rectangles of row groups and column
    tiles.
    """

    m: int
    n: int
    tile: int
    groups: int
    tiles: int
    wave: int
    by_rows: bool  # the next block has the next rows, not the next columns

    @property
    def _cut(self) -> tuple[int, int, int, int]:
        """Extents of the fast and the slow side of the grid, waves along the fast one, lines that a
        wave takes.
        """
        fast, slow = (self.groups, self.tiles) if self.by_rows else (self.tiles, self.groups)
        return fast, slow, -(-fast // self.wave), max(1, self.wave // fast)

    @property
    def count(self) -> int:
        _, slow, along, lines = self._cut
        return along * -(-slow // lines)

    def extent(self, wave: int) -> tuple[int, int, int, int]:
        """Rows from … to, columns from … to, of one wave."""
        fast, slow, along, lines = self._cut
        line, part = divmod(wave, along)
        one = part * fast // along, (part + 1) * fast // along
        other = line * lines, min(slow, (line + 1) * lines)
        (top, bottom), (left, right) = (one, other) if self.by_rows else (other, one)
        return (
            top * ROWS,
            min(self.m, bottom * ROWS),
            left * self.tile,
            min(self.n, right * self.tile),
        )


class Sparse(NamedTuple):
    """A matrix in CSR, without its values."""

    offsets: NDArray[np.int64]
    columns: NDArray[np.int32]


class Gathered(NamedTuple):
    """Which rows of B some rows of A ask for: how many there are before each, and in which step
    each is first asked for.
    """

    before: NDArray[np.int32]
    step: NDArray[np.int32]
    least: NDArray[np.int32]  # of each ``_COARSE`` steps


@functools.lru_cache(maxsize=1)
def _sparse(m: int, nonzeros: int, skew: float, seed: int) -> Sparse:
    """An m × m matrix.

    One law is for rows and columns, so that long rows belong to popular columns, as in graphs.
    """
    law = Zipf(m, skew, seed)
    lengths, columns = np.zeros(m, np.int64), np.empty(nonzeros, np.int32)
    for part, first in enumerate(range(0, nonzeros, _DRAWN)):
        random, count = generator(seed, 1 + part), min(_DRAWN, nonzeros - first)
        lengths += np.bincount(law.draw(random, count), minlength=m)
        columns[first : first + count] = law.draw(random, count)
    return Sparse(_tidied(lengths, columns, np.uint64(seed)), columns)


@jit
def _tidied(lengths: Any, columns: Any, key: Any) -> Any:
    """Make every row's columns distinct and rising; returns the rows' offsets. What is too much for
    a row goes to the next.

    A column that a row has already is replaced by any other, all alike, or at last by the next that
    is free.
    """
    m = len(lengths)
    offsets, taken = np.zeros(m + 1, np.int64), np.full(m, -1, np.int32)
    over = 0
    for turn in range(2 * m):  # from the last row on to the first, if need be
        row = turn % m
        lengths[row] += over
        over = max(0, lengths[row] - m)
        lengths[row] -= over
        if turn >= m and not over:
            break
    drawn = 0
    for row in range(m):
        offsets[row + 1] = offsets[row] + lengths[row]
        for i in range(offsets[row], offsets[row + 1]):
            column, tries = np.int64(columns[i]), 0
            while taken[column] == row:
                column = below(m, key, drawn) if tries < _TRIES else (column + 1) % m
                drawn += 1
                tries += 1
            taken[column] = row
            columns[i] = column
        columns[offsets[row] : offsets[row + 1]].sort()
    return offsets


@jit
def _gathered(a: Any, top: int, bottom: int) -> Any:
    """Read the columns of rows ``top`` to ``bottom`` of A."""
    m, offsets, columns = len(a.offsets) - 1, a.offsets, a.columns
    step, before = np.full(m, -1, np.int32), np.zeros(m + 1, np.int32)
    for row in range(top, bottom):
        for i in range(offsets[row], offsets[row + 1]):
            column, now = columns[i], (i - offsets[row]) // WARP
            if step[column] < 0 or now < step[column]:
                step[column] = now
    least = np.full((m + _COARSE - 1) // _COARSE, np.int32(2**31 - 1))
    for row in range(m):
        before[row + 1] = before[row] + (step[row] >= 0)
        if step[row] < 0:
            step[row] = 2**31 - 1
        least[row // _COARSE] = min(least[row // _COARSE], step[row])
    return Gathered(before, step, least)


def _bytes_touched(plan: Plan, a: Sparse, found: Any) -> int:
    """Bytes that all waves use together: the sum of the trace's bytes."""
    total = 4 * plan.m * plan.n  # C
    for wave in range(plan.count):
        top, bottom, left, right = plan.extent(wave)
        total += 4 * (bottom - top + 1) + 8 * int(a.offsets[bottom] - a.offsets[top])
        total += 4 * int(found(top, bottom).before[-1]) * (right - left)
    return total


@jit
def _need_a(
    needs: Any, a: Any, top: int, bottom: int, offsets: Any, columns: Any, values: Any
) -> Any:
    """Rows ``top`` to ``bottom`` of A: their offsets, then columns and values, 32 of each row in a
    step.
    """
    end = stretch(needs, 0, 0, offsets, 4 * top, 4 * (bottom + 1), 0)
    begins = a.offsets
    for matrix in (columns, values):
        own = end
        for row in range(top, bottom):
            low, high = 4 * begins[row], 4 * begins[row + 1]
            at = low
            while at < high:
                number = at // matrix.page
                stop = min(high, (number + 1) * matrix.page)
                end = _need(
                    needs, own, end, matrix, number, stop - at, 1 + 2 * ((at - low) // (4 * WARP))
                )
                at = stop
    return end


@jit
def _need_b(needs: Any, end: int, b: Any, left: int, right: int, found: Any) -> Any:
    """Of columns ``left`` to ``right`` of B the rows that are asked for, as they are asked for."""
    before, step, least = found.before, found.step, found.least
    own, height = end, b.pitch
    for column in range(left, right):
        at, high = column * height, (column + 1) * height
        while at < high:
            number = at // b.page
            stop = min(high, (number + 1) * b.page)
            first, last = (at - column * height) // 4, (stop - column * height) // 4
            rows = before[last] - before[first]
            if rows > 0:
                end = _need(
                    needs,
                    own,
                    end,
                    b,
                    number,
                    4 * rows,
                    2 + 2 * _earliest(step, least, first, last),
                )
            at = stop
    return end


@jit
def _need_c(
    needs: Any, end: int, c: Any, top: int, bottom: int, left: int, right: int, step: int
) -> Any:
    own = end
    for column in range(left, right):
        at = column * c.pitch
        end = stretch(needs, own, end, c, at + 4 * top, at + 4 * bottom, step)
    return end


@jit
def _earliest(step: Any, least: Any, first: int, last: int) -> Any:
    """The least of steps ``first`` to ``last``."""
    earliest = step[first]
    while first < last:
        if first % _COARSE == 0 and first + _COARSE <= last:
            earliest = min(earliest, least[first // _COARSE])
            first += _COARSE
        else:
            earliest = min(earliest, step[first])
            first += 1
    return earliest


@jit
def _need(needs: Any, own: int, end: int, matrix: Any, number: int, used: int, step: int) -> Any:
    """Add a page to the list, in rising order, or to the last one's bytes; the earliest step
    counts.
    """
    page = matrix.first_page + number
    if end > own and needs[end - 1].page == page:
        needs[end - 1].bytes += used
        needs[end - 1].step = min(needs[end - 1].step, step)
        return end
    needs[end].page = page
    needs[end].bytes = used
    needs[end].step = step
    needs[end].reference = matrix.reference
    needs[end].write = matrix.write
    return end + 1
