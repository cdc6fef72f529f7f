"""Regular patterns: cyclic (the classic worst case of LRU), stream and stencil."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Object, Segment
from tidegate.workloads.elementwise import merged_blocks, one_pass
from tidegate.workloads.program import (
    Derived,
    Launches,
    Space,
    SquareMatrices,
    Workload,
    footprint,
    workload,
)
from tidegate.workloads.waves import Matrix, add_rows, distribute, wave_segments


@workload("cyclic")
class Cyclic(Workload):
    """Passes over one array, page by page, each read whole.

    A pass is a launch, so passes do not overlap.
    """

    bytes = footprint("1GiB", "size of the array")
    passes = Option(4, "how often the array is read", least=1)
    block = Option(4, "consecutive pages that a block reads", least=1)

    def sizes(self) -> dict[str, int]:
        return {"array": self.bytes}

    def launches(self, space: Space) -> Launches:
        for _ in range(self.passes):
            yield Launch("pass", one_pass(space, ["array"], self.block))


_THREAD_BLOCK = 256 * 4  # bytes: 256 threads of one float each, as in the CUDA samples' vectorAdd


@workload("stream")
class Stream(Derived):
    """A copy of a vector of floats, without reuse.

        i = blockDim.x * blockIdx.x + threadIdx.x
        b[i] = a[i]

    With another share of output than a half, i runs over the longer vector, of n floats, and the
    kernel is ``b[i * len(b) / n] = a[i * len(a) / n]``. Access sites: 0 = a, 1 = b; with one vector
    only, 0.
    """

    bytes = footprint("1GiB", "size of input and output together")
    writes = Option(
        0.5, "share that is output; 1/2 is a copy", parse=units.fraction, least=0, most=1
    )

    def sizes(self) -> dict[str, int]:
        floats = self.bytes // 4
        sizes = {"a": 4 * int(floats * (1 - self.writes)), "b": 4 * int(floats * self.writes)}
        return {name: size for name, size in sizes.items() if size}

    def launches(self, space: Space) -> Launches:
        block, width = merged_blocks(space.geometry, _THREAD_BLOCK)
        yield Launch("copy", one_pass(space, list(space), block, writes=["b"]), width)


TILE_X, TILE_Y = 32, 8  # the thread block of PolyBench/GPU's jacobi2D and 2DConvolution
_FLOPS = 5  # per point: four additions, one multiplication


@workload("stencil")
class Stencil(SquareMatrices):
    """Jacobi's five-point stencil on an n × n matrix of floats, row-major, edges clamped.

        x, y = blockIdx.x * 32 + threadIdx.x, blockIdx.y * 8 + threadIdx.y
        out[y][x] = 0.2 * (in[y][x] + in[y][x-1] + in[y][x+1] + in[y-1][x] + in[y+1][x])

    Each iteration is a launch; then ``in`` and ``out`` change places. The thread blocks of a band
    of 8 rows, from left to right, are a wave: it reads its rows and a halo row above and below, and
    writes its rows. Its pages are distributed over ``lanes`` blocks. Access sites: 0 = in, 1 = out.
    """

    arrays = ("even", "odd")
    bytes = footprint("1GiB", "size of both matrices together")
    iterations = Option(4, "how often the stencil is applied", least=1)
    lanes = Option(
        TILE_Y, "blocks that share a band's pages in turn; default: one per warp of a tile", least=1
    )

    def launches(self, space: Space) -> Launches:
        n, bands, tiles = self.n, -(-self.n // TILE_Y), -(-self.n // TILE_X)
        lanes = min(self.lanes, tiles)
        rows_read = n + 2 * (bands - 1)  # every band reads a halo row from each neighbour
        intensity = _FLOPS * n * n / (4 * n * (rows_read + n))
        order = space["even"], space["odd"]
        for iteration in range(self.iterations):
            source, target = order if iteration % 2 == 0 else order[::-1]
            touches = self._touches(space.geometry.page, source, target, lanes)
            yield Launch("jacobi", touches, tiles // lanes, intensity)

    def _touches(self, page: int, source: Object, target: Object, lanes: int) -> Iterator[Segment]:
        n = self.n
        read = Matrix(source.first_page, page, 4 * n, site=0, write=0)
        written = Matrix(target.first_page, page, 4 * n, site=1, write=1)
        most = 2 * ((TILE_Y + 2) * 4 * n // page + 2)  # pages of the rows read, and as many written
        return wave_segments(-(-n // TILE_Y), most, _fill, n, lanes, read, written)


@jit
def _fill(
    columns: Any, needs: Any, band: int, enough: int, n: int, lanes: int, read: Any, written: Any
) -> Any:
    """Fill in bands from ``band`` on, until there are ``enough`` touches; see ``waves.Fill``."""
    block = touch = 0
    tiles = (n + TILE_X - 1) // TILE_X
    while band * TILE_Y < n and touch < enough:
        top, bottom = band * TILE_Y, min(n, (band + 1) * TILE_Y)
        end = add_rows(needs, 0, read, max(0, top - 1), min(n, bottom + 1), 4 * TILE_X)
        end = add_rows(needs, end, written, top, bottom, 4 * TILE_X)
        block, touch = distribute(needs, end, tiles, lanes, columns, block, touch)
        band += 1
    return band, block, touch
