"""matmul: every wave of thread blocks sweeps most of one operand."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt
from typing import Any

from numpy.typing import NDArray

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance, Segment
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.wave import Columns, Matrix, deal, panel, stretch, waves

TILE = 32  # BLOCK_SIZE of matrixMul


@workload("matmul")
class MatMul(Workload):
    """C = A·B, n × n floats, row-major: matrixMul of NVIDIA's CUDA samples (0_Introduction), 32 ×
    32 tiles.

    Block (bx, by), thread (tx, ty), for k = 0, 32, 64, … < n:

        As[ty][tx] = A[(32 by + ty) n + k + tx]           rows 32 by … 32 by + 31, columns k … k + 31
        Bs[ty][tx] = B[(k + ty) n + 32 bx + tx]           rows k … k + 31, columns 32 bx … 32 bx + 31
        Csub += As[ty][0…31] · Bs[0…31][tx]
        C[(32 by + ty) n + 32 bx + tx] = Csub             after the last k

    Blocks are taken with bx fastest, so the ``wave`` blocks that are resident together lie in one
    row of tiles or two: in each step of k they need a few tiles of A and, of 32 rows of B, the
    columns they lie in. They share these, which keeps them in step. So a wave is one list of pages,
    each once, when it is first needed, with the bytes of it that the wave uses in all; C's pages
    come last. The list is dealt over ``lanes`` blocks. The sample asks for whole tiles; here the
    last ones are cut off at the edge. References: 0 = A, 1 = B, 2 = C.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        units.size("1GiB"), "size of the three matrices together", parse=units.size, least=1
    )
    wave = Option(656, "thread blocks resident together; 656 are 82 SMs with 8 each", least=1)
    lanes = Option(16, "blocks that a wave is dealt over", least=1)
    # L, low confidence: a guess, named so that it can be varied.
    efficiency = Option(
        0.1,
        "share of peak FP32 that the kernel reaches (a guess)",
        parse=units.fraction,
        least=0.001,
        most=1,
    )

    @property
    def n(self) -> int:
        """Rows and columns of a matrix."""
        return isqrt(self.bytes // 12)

    def sizes(self) -> dict[str, int]:
        return dict.fromkeys(("A", "B", "C"), 4 * self.n**2)

    def launches(self, space: Space) -> Iterator[Launch]:
        n, tiles = self.n, -(-self.n // TILE)
        wave = min(self.wave, tiles * tiles)
        lanes = min(self.lanes, wave)
        intensity = 2 * n**3 / _bytes_touched(n, wave) / self.efficiency
        yield Launch("matrixMul", self._touches(space, wave, lanes), wave // lanes, intensity)

    def _touches(self, space: Space, wave: int, lanes: int) -> Iterator[Segment]:
        n, page, tiles = self.n, space.geometry.page, -(-self.n // TILE)
        a, b, c = (
            Matrix(space[name].first_page, page, 4 * n, reference, int(name == "C"))
            for reference, name in enumerate("ABC")
        )

        def fill(
            columns: Columns, needs: NDArray[Any], number: int, enough: int
        ) -> tuple[int, int, int]:
            return _fill(columns, needs, number, enough, n, wave, lanes, a, b, c)

        rows = TILE * (wave // tiles + 2)  # at most, that a wave's tiles of A and C lie in
        most = space["B"].pages + 2 * (rows * 4 * n // page + 2)
        yield from waves(-(-tiles * tiles // wave), most, fill)


@jit
def _extent(number: int, wave: int, n: int) -> Any:
    """Where wave ``number`` lies: its first and its last tile, each as row and column of tiles."""
    tiles = (n + TILE - 1) // TILE
    first, last = number * wave, min((number + 1) * wave, tiles * tiles) - 1
    return first // tiles, first % tiles, last // tiles, last % tiles


@jit
def _columns(extent: Any, n: int) -> Any:
    """The columns a wave lies in, as two stretches in rising order; the second may be empty."""
    top, left, bottom, right = extent
    begin, stop = left * TILE, min(n, (right + 1) * TILE)
    if top == bottom:
        return begin, stop, n, n
    # the end of one row of tiles and the beginning of the next
    if bottom == top + 1 and stop < begin:
        return 0, stop, begin, n
    return 0, n, n, n


@jit
def _bytes_touched(n: int, wave: int) -> Any:
    """Bytes that all waves use together, as a float: the sum of the trace's bytes."""
    tiles = (n + TILE - 1) // TILE
    total = 4.0 * n * n  # C
    for number in range((tiles * tiles + wave - 1) // wave):
        extent = _extent(number, wave, n)
        low, high, low2, high2 = _columns(extent, n)
        rows = min(n, (extent[2] + 1) * TILE) - extent[0] * TILE
        total += 4.0 * n * (rows + high - low + high2 - low2)
    return total


@jit
def _fill(
    columns: Any,
    needs: Any,
    number: int,
    enough: int,
    n: int,
    wave: int,
    lanes: int,
    a: Any,
    b: Any,
    c: Any,
) -> Any:
    """Waves from ``number`` on, until there are ``enough`` touches; see ``wave.Fill``."""
    block = touch = 0
    tiles = (n + TILE - 1) // TILE
    while number * wave < tiles * tiles and touch < enough:
        extent = _extent(number, wave, n)
        end = panel(needs, 0, a, extent[0] * TILE, min(n, (extent[2] + 1) * TILE), 4 * TILE)
        end = _need_b(needs, end, b, n, _columns(extent, n))
        end = _need_c(needs, end, c, n, extent)
        block, touch = deal(needs, end, tiles + 1, lanes, columns, block, touch)
        number += 1
    return number, block, touch


@jit
def _need_b(needs: Any, end: int, b: Any, n: int, columns: Any) -> Any:
    """All rows of B, 32 in a step, in the wave's columns."""
    own = end
    low, high, low2, high2 = columns
    for row in range(n):
        at = row * b.pitch
        end = stretch(needs, own, end, b, at + 4 * low, at + 4 * high, row // TILE)
        end = stretch(needs, own, end, b, at + 4 * low2, at + 4 * high2, row // TILE)
    return end


@jit
def _need_c(needs: Any, end: int, c: Any, n: int, extent: Any) -> Any:
    """The wave's tiles of C, written after the last step of k."""
    own = end
    top, left, bottom, right = extent
    for row in range(top * TILE, min(n, (bottom + 1) * TILE)):
        low = left * TILE if row // TILE == top else 0
        high = min(n, (right + 1) * TILE) if row // TILE == bottom else n
        at = row * c.pitch
        end = stretch(needs, own, end, c, at + 4 * low, at + 4 * high, (n + TILE - 1) // TILE)
    return end
