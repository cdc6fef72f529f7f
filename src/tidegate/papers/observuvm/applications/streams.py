"""2DC and BLK: arrays that stream through memory, again and again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.papers.cppe.applications.convolutions import TILE_X, TILE_Y, Convolution2D
from tidegate.trace.trace import Launch, Segment
from tidegate.workloads.elementwise import BlackScholes
from tidegate.workloads.program import Launches, Space, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import across
from tidegate.workloads.waves import (
    Matrix,
    WaveWorkload,
    add_bytes,
    distribute,
    wave_extent,
    wave_segments,
)

_FLOPS = 17  # per float of the output: nine products and their sum


@workload("2DC")
class RepeatedConvolution2D(Convolution2D, WaveWorkload):
    """A convolution with 3 × 3 weights, n × n floats, row-major: 2DCONV of PolyBench/GPU.

    Thread blocks have 32 × 8 threads.

        j, i = blockIdx.x * 32 + threadIdx.x, blockIdx.y * 8 + threadIdx.y
        B[i n + j] = Σ c[p][q] * A[(i + p) n + j + q],  p, q = -1, 0, 1      where 0 < i, j < n - 1

    Operands: A is read and B is written, both from the first row to the last, once in every call.
    Grid order: blockIdx.x fastest. The ``wave`` thread blocks that are resident together lie in one
    band of 8 rows or two; a wave is a list of the pages of A it reads and then those of B it
    writes, distributed over ``lanes`` blocks. Access sites: 0 = A, 1 = B. Table II: "2DC
    convolution", 18.0 GB; VII-A calls it cyclic, but the paper gives no number of calls; PolyBench
    makes one.
    """

    bytes = published_footprint("2DC", "size of both matrices together")
    iterations = Option(
        16, "calls of the kernel (a choice: 16, as in NVIDIA's convolutionSeparable)", least=1
    )
    swap = Option(False, "whether A and B change places after every call (a choice)")

    def launches(self, space: Space) -> Launches:
        n, tiles = self.n, across(self.n, TILE_X) * across(self.n, TILE_Y)
        wave = min(self.wave, tiles)
        lanes = min(self.lanes, wave)
        intensity = _FLOPS * (n - 2) ** 2 / _bytes_used(n, wave)
        for iteration in range(self.iterations):
            names = "BA" if self.swap and iteration % 2 else "AB"
            touches = self._touches(space, names, -(-tiles // wave), wave, lanes)
            yield Launch("convolution2D", touches, wave // lanes, intensity)

    def _touches(
        self, space: Space, names: str, count: int, wave: int, lanes: int
    ) -> Iterator[Segment]:
        n, page = self.n, space.geometry.page
        source = Matrix(space[names[0]].first_page, page, 4 * n, site=0, write=0)
        target = Matrix(space[names[1]].first_page, page, 4 * n, site=1, write=1)
        most = 2 * space["A"].pages
        return wave_segments(count, most, _fill, n, wave, lanes, (source, target))


@jit
def _fill(
    columns: Any, needs: Any, number: int, enough: int, n: int, wave: int, lanes: int, ab: Any
) -> Any:
    """Fill in waves from ``number`` on, until there are ``enough`` touches; see ``waves.Fill``."""
    source, target = ab
    block = touch = 0
    while number * wave < across(n, TILE_X) * across(n, TILE_Y) and touch < enough:
        extent = _extent(number, wave, n)
        end = _add_around(needs, 0, source, n, extent)
        end = _add_inside(needs, end, target, n, extent)
        block, touch = distribute(needs, end, 2, lanes, columns, block, touch)
        number += 1
    return number, block, touch


@jit
def _extent(number: int, wave: int, n: int) -> Any:
    return wave_extent(number, wave, across(n, TILE_X), across(n, TILE_X) * across(n, TILE_Y))


@jit
def _inside(extent: Any, n: int, row: int) -> Any:
    """Return the columns that a wave writes in one row; the matrix's edges are not written."""
    top, left, bottom, right = extent
    band = row // TILE_Y
    if band < top or band > bottom or row < 1 or row >= n - 1:
        return n, n
    first = left * TILE_X if band == top else 0
    stop = (right + 1) * TILE_X if band == bottom else n
    return max(1, first), min(n - 1, stop)


@jit
def _around(extent: Any, n: int, row: int) -> Any:
    """Return the columns that a wave reads in one row, as two ranges in rising order.

    Either may be empty. A wave reads what lies around what it writes in this row and in those above
    and below. These are in one band or in two, and if the wave has tiles of both, those of the
    lower band begin at the left.
    """
    first, stop = _inside(extent, n, row - 1)
    first2, stop2 = _inside(extent, n, row + 1)
    if first >= stop:
        first, stop = _inside(extent, n, row)
    if first2 >= stop2:
        first2, stop2 = _inside(extent, n, row)
    if first >= stop:
        first, stop = first2, stop2
    if first2 >= stop2:
        first2, stop2 = first, stop
    if first >= stop:
        return n, n, n, n
    if first2 - 1 <= stop + 1 and first - 1 <= stop2 + 1:  # they meet
        return min(first, first2) - 1, max(stop, stop2) + 1, n, n
    return first2 - 1, stop2 + 1, first - 1, stop + 1


@jit
def _add_around(needs: Any, end: int, source: Any, n: int, extent: Any) -> Any:
    """Add what the wave reads of A: its rows and one more above and below."""
    own = end
    for row in range(max(0, extent[0] * TILE_Y - 1), min(n, (extent[2] + 1) * TILE_Y + 1)):
        at = row * source.pitch
        low, high, low2, high2 = _around(extent, n, row)
        end = add_bytes(needs, own, end, source, at + 4 * low, at + 4 * high, 0)
        end = add_bytes(needs, own, end, source, at + 4 * low2, at + 4 * high2, 0)
    return end


@jit
def _add_inside(needs: Any, end: int, target: Any, n: int, extent: Any) -> Any:
    """Add what the wave writes of B, after it has read."""
    own = end
    for row in range(extent[0] * TILE_Y, min(n, (extent[2] + 1) * TILE_Y)):
        at = row * target.pitch
        low, high = _inside(extent, n, row)
        end = add_bytes(needs, own, end, target, at + 4 * low, at + 4 * high, 1)
    return end


@jit
def _bytes_used(n: int, wave: int) -> Any:
    """Return the bytes that all waves of a call use, as a float: the sum of the trace's bytes."""
    total = 4.0 * (n - 2) * (n - 2)  # B
    for number in range((across(n, TILE_X) * across(n, TILE_Y) + wave - 1) // wave):
        extent = _extent(number, wave, n)
        for row in range(max(0, extent[0] * TILE_Y - 1), min(n, (extent[2] + 1) * TILE_Y + 1)):
            low, high, low2, high2 = _around(extent, n, row)
            total += 4.0 * (high - low + high2 - low2)
    return total


@workload("BLK")
class BLK(BlackScholes):
    """Prices of European options: ``blackscholes`` (BlackScholes of the CUDA samples).

        opt = blockDim.x * blockIdx.x + threadIdx.x            128 threads, each two options
        d_CallResult[opt], d_PutResult[opt] =
            f(d_StockPrice[opt], d_OptionStrike[opt], d_OptionYears[opt])

    Operands: five vectors of equal length, walked in step. Grid order: from the first option to the
    last, in every iteration. Access sites: 0 = stock, 1 = strike, 2 = years, 3 = call, 4 = put.
    Table II: "Black Scholes iterative algorithm", 10.0 GB, without a number of iterations; the
    sample's 512 are alike but for the first.
    """

    bytes = published_footprint("BLK", "size of the five vectors together")
    iterations = Option(
        16, "how often all options are priced (a choice: the paper does not say)", least=1
    )
