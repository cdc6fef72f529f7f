"""SPM: a sparse matrix times a dense one; column indices pick the rows that are gathered."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import log, log1p
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Segment
from tidegate.workloads.graph import random_below
from tidegate.workloads.program import Launches, Space, efficiency_option, largest_fit, workload
from tidegate.workloads.random_pages import Zipf, generator
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.waves import (
    Columns,
    Matrix,
    WaveWorkload,
    add_bytes,
    add_page,
    distribute,
    wave_segments,
)

WARP = 32  # non-zeros that are read at a time
ROWS = 8  # of a thread block: 256 threads, a warp for each row
_COARSE = 64  # rows of B that are searched together
_CACHED = 64 << 20  # bytes of gathered rows that are cached for the next column of tiles
_DRAWN = 1 << 20  # random numbers at a time
_TRIES = 64
_MADE = 1 << 26  # non-zeros of A that are made in any case: 256 MiB of columns


@workload("SPM")
class SpMM(WaveWorkload):
    """C = A·B: cusparseSpMM of an m × m CSR matrix A with a dense m × n matrix B of floats.

    NVIDIA's sample (CUDALibrarySamples, spmm_csr) has 32-bit indices, B and C column-major, and
    calls CUSPARSE_SPMM_ALG_DEFAULT; for that layout cuSPARSE's documentation recommends CSR_ALG1.
    Its kernel is not public. This is the usual one for that layout, a warp to a row of A and a lane
    to a column of B (rocSPARSE's csrmmnn, whose interface follows cuSPARSE's):

        row = 8 blockIdx.x + warp;  col = 32 blockIdx.y + lane
        for j = offsets[row], + 32, … < offsets[row + 1]:
            k[lane], v[lane] = columns[j + lane], values[j + lane]
            for i in 0 … 31:  sum += v[i] · B[k[i] + col·m]
        C[row + col·m] = sum

    Blocks are taken with blockIdx.x fastest, so a column of tiles is done before the next: A is
    streamed for each, and all of B's and C's columns come once. The ``wave`` blocks that are
    resident together walk in step; they need one list of pages, each once, in the order of the
    non-zeros (32 a step) that need it, with the bytes of it that they use in all, distributed over
    ``lanes`` blocks. Waves end with a column of tiles. Access sites: 0 = offsets, 1 = columns, 2 =
    values, 3 = B, 4 = C.

    The touches are *derived*: A is made here, from a seed, and its rows are really gathered. The
    paper gives 8.0 GB and no shapes; density and shape are the sample's, a 4 × 4 matrix of 9
    non-zeros times a 4 × 3 one. If A is as dense as that, every wave gathers all rows of B. A large
    A is not made then: its rows are equally long, and a row of B is needed when the first of a
    wave's rows is expected to get there.
    """

    bytes = published_footprint("SPM", "size of the matrices together")
    density = Option(
        9 / 16,
        "share of A that is not zero (NVIDIA's sample: 9 of 16)",
        parse=units.fraction,
        least=1e-9,
        most=1,
    )
    aspect = Option(
        0.75,
        "columns of B and C for each row of A (NVIDIA's sample: 3 for 4)",
        parse=units.fraction,
        least=1e-9,
    )
    skew = Option(
        0.0, "exponent of Zipf's law for rows and columns of A; 0 is uniform (a choice)", least=0
    )
    tile = Option(32, "columns of B of a thread block (a choice: a lane each)", least=1)
    fastest = Option(
        "rows",
        "whether the next block has the next rows or columns (a choice)",
        choices=("rows", "columns"),
    )
    iterations = Option(
        1, "how often the product is called (a choice: once, as in NVIDIA's sample)", least=1
    )
    efficiency = efficiency_option(0.02)
    seed = Option(1, "seed of A", least=0)

    @property
    def m(self) -> int:
        """Rows of A, B and C, and columns of A: as many as fit."""
        return largest_fit(self.bytes, self._sizes, least=0)

    def sizes(self) -> dict[str, int]:
        return self._sizes(self.m)

    def _sizes(self, m: int) -> dict[str, int]:
        nonzeros, dense = 4 * self._nonzeros(m), 4 * m * self._columns(m)
        offsets = 4 * (m + 1) if m else 0
        return {"offsets": offsets, "columns": nonzeros, "values": nonzeros, "B": dense, "C": dense}

    def _nonzeros(self, m: int) -> int:
        return max(min(m, 1), int(self.density * m * m))

    def _columns(self, m: int) -> int:
        return max(1, int(self.aspect * m))

    def sparse(self) -> Sparse:
        """Return A; without its columns where every wave needs all rows of B."""
        m, nonzeros = self.m, self._nonzeros(self.m)
        if nonzeros > _MADE and self._gathers_all():
            return Sparse(np.arange(m + 1) * nonzeros // m, np.zeros(0, np.int32))
        return _sparse(m, nonzeros, self.skew, self.seed)

    def _gathers_all(self) -> bool:
        """Return whether less than one row of B in a million waves is expected to be left out."""
        rows = min(self.m, ROWS * min(self.wave, self._tiling().groups))
        return self.skew == 0 and rows * -log1p(-min(self.density, 1 - 1e-9)) > log(1e6 * self.m)

    def launches(self, space: Space) -> Launches:
        tiling, a = self._tiling(), self.sparse()
        cached = functools.lru_cache(max(1, _CACHED // (8 * tiling.m)))
        gathered = cached(self._gathered_by(a))
        flops = 2 * self._nonzeros(tiling.m) * tiling.n
        used = _bytes_touched(tiling, a, gathered)
        intensity = flops / sum(used) / self.efficiency
        sharing = self._sharing(tiling, used)
        lanes = min(self.lanes, tiling.wave)
        for _ in range(self.iterations):
            touches = _touches(space, tiling, a, gathered, lanes)
            yield Launch("csrmm", touches, tiling.wave // lanes, intensity, sharing=sharing)

    def _sharing(self, tiling: Tiling, used: tuple[int, int, int]) -> tuple[float, ...]:
        """Return by access site how many thread blocks use each byte that a wave uses.

        Each reads its rows of A and, of its columns of B, the rows that any of its rows needs.
        """
        m, n = tiling.m, tiling.n
        a = tiling.tiles * (4 * (m + tiling.groups) + 8 * self._nonzeros(m)) / used[0]
        needed = m * (1 - (1 - self.density) ** min(m, ROWS))  # rows of B, by one thread block
        b = max(1.0, tiling.groups * needed * 4 * n / used[1])
        return a, a, a, b, 1.0

    def _gathered_by(self, a: Sparse) -> Callable[[int, int], Gathered]:
        """Return the function of what the rows from ``top`` to ``bottom`` of A gather."""
        if len(a.columns):
            return lambda top, bottom: _gathered(a, top, bottom)
        return lambda top, bottom: _all_gathered(self.m, self.density, bottom - top)

    def _tiling(self) -> Tiling:
        m, n = self.m, self._columns(self.m)
        groups, tiles = -(-m // ROWS), -(-n // self.tile)
        wave = min(self.wave, groups * tiles)
        return Tiling(m, n, self.tile, groups, tiles, wave, self.fastest == "rows")


def _touches(
    space: Space, tiling: Tiling, a: Sparse, gathered: Any, lanes: int
) -> Iterator[Segment]:
    page, pitch = space.geometry.page, 4 * tiling.m  # of a column
    offsets, columns, values, b, c = (
        Matrix(o.first_page, page, pitch, site, int(o.name == "C"))
        for site, o in enumerate(space.values())
    )
    last = 2 + 2 * -(-int(np.diff(a.offsets).max()) // WARP)  # the step in which C is written

    def fill(room: Columns, needs: NDArray[Any], wave: int, enough: int) -> tuple[int, int, int]:
        block = touch = 0
        while wave < tiling.count and touch < enough:
            top, bottom, left, right = tiling.extent(wave)
            end = _add_a(needs, a, top, bottom, offsets, columns, values)
            end = _add_b(needs, end, b, left, right, gathered(top, bottom))
            end = _add_c(needs, end, c, top, bottom, left, right, last)
            block, touch = distribute(needs, end, last + 1, lanes, room, block, touch)
            wave += 1
        return wave, block, touch

    return wave_segments(tiling.count, sum(o.pages for o in space.values()), fill)


@dataclass(frozen=True)
class Tiling:
    """The grid of thread blocks, cut into waves: rectangles of row groups and column tiles."""

    m: int
    n: int
    tile: int
    groups: int
    tiles: int
    wave: int
    by_rows: bool  # the next block has the next rows, not the next columns

    @property
    def _cut(self) -> tuple[int, int, int, int]:
        """Fast and slow side of the grid, waves along the fast one, lines that a wave takes."""
        fast, slow = (self.groups, self.tiles) if self.by_rows else (self.tiles, self.groups)
        return fast, slow, -(-fast // self.wave), max(1, self.wave // fast)

    @property
    def count(self) -> int:
        _, slow, along, lines = self._cut
        return along * -(-slow // lines)

    def extent(self, wave: int) -> tuple[int, int, int, int]:
        """Return first and stop of the rows, then of the columns, of one wave."""
        fast, slow, along, lines = self._cut
        line, part = divmod(wave, along)
        one = part * fast // along, (part + 1) * fast // along
        other = line * lines, min(slow, (line + 1) * lines)
        (top, bottom), (left, right) = (one, other) if self.by_rows else (other, one)
        top, bottom = top * ROWS, min(self.m, bottom * ROWS)
        return top, bottom, left * self.tile, min(self.n, right * self.tile)


class Sparse(NamedTuple):
    """A matrix in CSR, without its values."""

    offsets: NDArray[np.int64]
    columns: NDArray[np.int32]


class Gathered(NamedTuple):
    """The rows of B that some rows of A need."""

    before: NDArray[np.int32]  # how many are needed before each row
    step: NDArray[np.int32]  # in which each is first needed
    least: NDArray[np.int32]  # of each ``_COARSE`` steps


@functools.lru_cache(maxsize=1)
def _sparse(m: int, nonzeros: int, skew: float, seed: int) -> Sparse:
    """Return an m × m matrix.

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
    """Make every row's columns distinct and rising; return the rows' offsets.

    Columns that a row has no room for go to the next row. A column that a row has already is
    replaced by one drawn uniformly, or after some tries by the next that is free.
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
                column = random_below(m, key, drawn) if tries < _TRIES else (column + 1) % m
                drawn += 1
                tries += 1
            taken[column] = row
            columns[i] = column
        columns[offsets[row] : offsets[row + 1]].sort()
    return offsets


@jit
def _gathered(a: Any, top: int, bottom: int) -> Any:
    """Return the rows of B that rows ``top`` to ``bottom`` of A need."""
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


def _all_gathered(m: int, density: float, rows: int) -> Gathered:
    """Return that ``rows`` rows of A need all rows of B, each when the first of them is due.

    In front of column c a row has c · density non-zeros, give or take; the least of many such
    numbers lies as far below as a normal variable does once in so many.
    """
    c = np.arange(m)
    least = c * density + NormalDist().inv_cdf(1 / (rows + 1)) * np.sqrt(
        c * density * (1 - density)
    )
    step = np.maximum.accumulate(np.maximum(least, 0)).astype(np.int64) // WARP
    coarse = np.arange(0, m, _COARSE)
    return Gathered(
        np.arange(m + 1, dtype=np.int32), step.astype(np.int32), step[coarse].astype(np.int32)
    )


def _bytes_touched(tiling: Tiling, a: Sparse, gathered: Any) -> tuple[int, int, int]:
    """Return the bytes of A, B and C that all waves use; together, the sum of the trace's bytes."""
    of_a = of_b = 0
    for wave in range(tiling.count):
        top, bottom, left, right = tiling.extent(wave)
        of_a += 4 * (bottom - top + 1) + 8 * int(a.offsets[bottom] - a.offsets[top])
        of_b += 4 * int(gathered(top, bottom).before[-1]) * (right - left)
    return of_a, of_b, 4 * tiling.m * tiling.n


@jit
def _add_a(
    needs: Any, a: Any, top: int, bottom: int, offsets: Any, columns: Any, values: Any
) -> Any:
    """Add rows ``top`` to ``bottom`` of A: offsets, then columns and values, 32 a row in a step."""
    end = add_bytes(needs, 0, 0, offsets, 4 * top, 4 * (bottom + 1), 0)
    begins = a.offsets
    for matrix in (columns, values):
        own = end
        for row in range(top, bottom):
            low, high = 4 * begins[row], 4 * begins[row + 1]
            at = low
            while at < high:
                number = at // matrix.page
                stop = min(high, (number + 1) * matrix.page)
                step = 1 + 2 * ((at - low) // (4 * WARP))
                end = _add_earliest(needs, own, end, matrix, number, stop - at, step)
                at = stop
    return end


@jit
def _add_b(needs: Any, end: int, b: Any, left: int, right: int, gathered: Any) -> Any:
    """Add the needed rows of columns ``left`` to ``right`` of B, at the step of first need."""
    before, step, least = gathered.before, gathered.step, gathered.least
    own, height = end, b.pitch
    for column in range(left, right):
        at, high = column * height, (column + 1) * height
        while at < high:
            number = at // b.page
            stop = min(high, (number + 1) * b.page)
            first, last = (at - column * height) // 4, (stop - column * height) // 4
            rows = before[last] - before[first]
            if rows > 0:
                now = 2 + 2 * _earliest(step, least, first, last)
                end = _add_earliest(needs, own, end, b, number, 4 * rows, now)
            at = stop
    return end


@jit
def _add_c(
    needs: Any, end: int, c: Any, top: int, bottom: int, left: int, right: int, step: int
) -> Any:
    own = end
    for column in range(left, right):
        at = column * c.pitch
        end = add_bytes(needs, own, end, c, at + 4 * top, at + 4 * bottom, step)
    return end


@jit
def _earliest(step: Any, least: Any, first: int, last: int) -> Any:
    """Return the least of steps ``first`` to ``last``."""
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
def _add_earliest(
    needs: Any, own: int, end: int, matrix: Any, number: int, used: int, step: int
) -> Any:
    """Add a page, in rising order, or its bytes to the last one's; the earliest step counts."""
    if end > own and needs[end - 1].page == matrix.first_page + number:
        needs[end - 1].bytes += used
        needs[end - 1].step = min(needs[end - 1].step, step)
        return end
    return add_page(needs, end, matrix, number, used, step)
