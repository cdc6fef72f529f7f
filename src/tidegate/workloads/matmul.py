"""matmul: every wave of thread blocks reads most of one operand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidegate.compiled.jit import jit
from tidegate.trace.trace import Launch, Segment
from tidegate.workloads.program import (
    Launches,
    Space,
    SquareMatrices,
    efficiency_option,
    footprint,
    workload,
)
from tidegate.workloads.thread_blocks import across
from tidegate.workloads.waves import (
    Matrix,
    WaveWorkload,
    add_bytes,
    add_rows,
    distribute,
    wave_extent,
    wave_segments,
)

TILE = 32  # BLOCK_SIZE of matrixMul


@workload("matmul")
class MatMul(SquareMatrices, WaveWorkload):
    """C = A·B, n × n floats, row-major: matrixMul of NVIDIA's CUDA samples (0_Introduction).

    Tiles are 32 × 32. Block (bx, by), thread (tx, ty), for k = 0, 32, 64, … < n:

        As[ty][tx] = A[(32 by + ty) n + k + tx]      rows 32 by … 32 by + 31, columns k … k + 31
        Bs[ty][tx] = B[(k + ty) n + 32 bx + tx]      rows k … k + 31, columns 32 bx … 32 bx + 31
        Csub += As[ty][0…31] · Bs[0…31][tx]
        C[(32 by + ty) n + 32 bx + tx] = Csub        after the last k

    Blocks are taken with bx fastest, so the ``wave`` blocks that are resident together lie in one
    row of tiles or two: in each step of k they need a few tiles of A and, of 32 rows of B, the
    columns they lie in. They share these, which keeps them in step. So a wave is one list of pages,
    each once, at its first use, with the bytes of it that the wave uses in all; C's pages come
    last. The list is distributed over ``lanes`` blocks. The sample needs whole tiles; here the last
    ones are cut off at the edge. Access sites: 0 = A, 1 = B, 2 = C.
    """

    arrays = ("A", "B", "C")
    bytes = footprint("1GiB", "size of the three matrices together")
    efficiency = efficiency_option(0.1)

    def launches(self, space: Space) -> Launches:
        n = self.n
        wave = min(self.wave, across(n, TILE) ** 2)
        lanes = min(self.lanes, wave)
        rows, columns = _panels_used(n, wave)
        intensity = 2 * n**3 / (4.0 * n * (n + rows + columns)) / self.efficiency
        touches, all_tiles = self._touches(space, wave, lanes), n * across(n, TILE)
        # every tile reads its rows of A and its columns of B
        sharing = all_tiles / rows, all_tiles / columns, 1.0
        yield Launch("matrixMul", touches, wave // lanes, intensity, sharing=sharing)

    def _touches(self, space: Space, wave: int, lanes: int) -> Iterator[Segment]:
        n, page, tiles = self.n, space.geometry.page, across(self.n, TILE)
        matrices = tuple(
            Matrix(space[name].first_page, page, 4 * n, site, int(name == "C"))
            for site, name in enumerate("ABC")
        )
        rows = TILE * (wave // tiles + 2)  # at most, that a wave's tiles of A and C lie in
        most = space["B"].pages + 2 * (rows * 4 * n // page + 2)
        return wave_segments(-(-tiles * tiles // wave), most, _fill, n, wave, lanes, matrices)


@jit
def _columns(extent: Any, n: int) -> Any:
    """Return a wave's columns as two ranges in rising order; the second may be empty."""
    top, left, bottom, right = extent
    begin, stop = left * TILE, min(n, (right + 1) * TILE)
    if top == bottom:
        return begin, stop, n, n
    # the end of one row of tiles and the beginning of the next
    if bottom == top + 1 and stop < begin:
        return 0, stop, begin, n
    return 0, n, n, n


@jit
def _panels_used(n: int, wave: int) -> Any:
    """Return the rows of A and the columns of B that waves use, added up over all waves."""
    tiles = across(n, TILE)
    all_rows = all_columns = 0
    for number in range((tiles * tiles + wave - 1) // wave):
        extent = wave_extent(number, wave, tiles, tiles * tiles)
        low, high, low2, high2 = _columns(extent, n)
        all_rows += min(n, (extent[2] + 1) * TILE) - extent[0] * TILE
        all_columns += high - low + high2 - low2
    return all_rows, all_columns


@jit
def _fill(
    columns: Any, needs: Any, number: int, enough: int, n: int, wave: int, lanes: int, abc: Any
) -> Any:
    """Fill in waves from ``number`` on, until there are ``enough`` touches; see ``waves.Fill``."""
    a, b, c = abc
    block = touch = 0
    tiles = across(n, TILE)
    while number * wave < tiles * tiles and touch < enough:
        extent = wave_extent(number, wave, tiles, tiles * tiles)
        end = add_rows(needs, 0, a, extent[0] * TILE, min(n, (extent[2] + 1) * TILE), 4 * TILE)
        end = _add_b(needs, end, b, n, _columns(extent, n))
        end = _add_c(needs, end, c, n, extent)
        block, touch = distribute(needs, end, tiles + 1, lanes, columns, block, touch)
        number += 1
    return number, block, touch


@jit
def _add_b(needs: Any, end: int, b: Any, n: int, columns: Any) -> Any:
    """Add all rows of B, 32 in a step, in the wave's columns."""
    own = end
    low, high, low2, high2 = columns
    for row in range(n):
        at = row * b.pitch
        end = add_bytes(needs, own, end, b, at + 4 * low, at + 4 * high, row // TILE)
        end = add_bytes(needs, own, end, b, at + 4 * low2, at + 4 * high2, row // TILE)
    return end


@jit
def _add_c(needs: Any, end: int, c: Any, n: int, extent: Any) -> Any:
    """Add the wave's tiles of C, written after the last step of k."""
    own = end
    top, left, bottom, right = extent
    for row in range(top * TILE, min(n, (bottom + 1) * TILE)):
        low = left * TILE if row // TILE == top else 0
        high = min(n, (right + 1) * TILE) if row // TILE == bottom else n
        at = row * c.pitch
        end = add_bytes(needs, own, end, c, at + 4 * low, at + 4 * high, across(n, TILE))
    return end
