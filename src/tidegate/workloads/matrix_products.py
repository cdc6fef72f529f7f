"""Products of matrices, whose thread blocks read panels of their operands, wave by wave.

Every matrix is row-major here. A column-major matrix is the row-major one of its transpose, so
BLAS's C = A·B is Cᵀ = Bᵀ·Aᵀ: a column in BLAS is a row here.

    Grid            the output, cut into tiles, one per thread block, and the order of the tiles
    Operand         which panels of a matrix the tiles of a wave need, and how these are read
    MatrixProduct   a workload made of these; LU makes its own launches with ``product_launch``

A wave is the thread blocks that are resident together. They walk through the depth of the product
(BLAS's k) in step, so a wave is one list of pages (see ``waves``): of each operand the panels that
its tile rows or its tile columns need, and after the last step the tiles themselves.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch
from tidegate.workloads.program import Launches, Space, efficiency_option
from tidegate.workloads.thread_blocks import FLOAT, across
from tidegate.workloads.waves import WaveWorkload, add_bytes, distribute, wave_segments

ROWS, COLUMNS, BOTH = 0, 1, 2  # what picks a panel: the wave's tile rows, its tile columns, either
TILE_HELP = "side of a thread block's tile of C (a choice: CUTLASS's default)"


class TileGrid(NamedTuple):
    """The output in tiles. They are taken row by row of tiles, each from left to right.

    With a ``swizzle`` of s, s rows of tiles are walked together, column by column (CUTLASS's
    GemmIdentityThreadblockSwizzle). ``triangle``: 1 for the tiles on the diagonal and right of it
    only, -1 for those on it and left of it, 0 for all; tiles are square then.
    """

    height: int  # of the output, in floats
    width: int
    tall: int  # of a tile, in floats
    wide: int
    swizzle: int = 1
    triangle: int = 0


class MatrixOperand(NamedTuple):
    """A matrix as a wave reads it; or, where ``write`` is set, the output.

    ``along``: the rows of the panel are read from left to right, all at once; otherwise the panel's
    columns are read from row to row. ``turn``: reads of a later turn come after all those of
    earlier ones.
    """

    first_page: int
    page: int  # bytes
    pitch: int  # bytes from row to row
    site: int
    write: int
    origin: int  # bytes from the beginning of the object to the first float of the operand
    which: int
    along: int
    turn: int


class ProductShape(NamedTuple):
    """The depth of a product and the sizes of its steps and waves."""

    depth: int  # elements
    chunk: int  # elements of the depth in a step
    wave: int  # thread blocks
    lanes: int
    element: int = FLOAT  # bytes
    added: bool = False  # C += A·B: after the last step the output is loaded, then stored


def operand(
    space: Space,
    name: str,
    pitch: int,
    site: int,
    which: int = ROWS,
    along: bool = False,
    *,
    row: int = 0,
    column: int = 0,
    write: bool = False,
    turn: int = 0,
    element: int = FLOAT,
) -> MatrixOperand:
    """Return a matrix of ``pitch`` elements a row, from ``row`` and ``column`` on."""
    origin = element * (row * pitch + column)
    place = space[name].first_page, space.geometry.page, element * pitch, site, int(write), origin
    return MatrixOperand(*place, which, int(along), turn)


class MatrixProduct(WaveWorkload):
    """Base of the workloads that are one product of matrices, called once."""

    # cuBLAS's kernels are not published. CUTLASS's for single precision have 256 threads to a tile
    # of 128 × 128, of up to 128 registers each, so that two thread blocks take the 65,536 registers
    # of an SM.
    wave = Option(
        164, "thread blocks resident together (a choice); 164 are 82 SMs with 2 each", least=1
    )
    efficiency = efficiency_option(0.9)
    slots = 4  # of a GPU with 8 slots to an SM, that one thread block takes
    element = FLOAT  # bytes
    kernel = ""
    chunk = 8  # floats of the depth in a step

    @abstractmethod
    def product(self) -> tuple[TileGrid, int, float]:
        """Return the output's tiles, the depth, and all floating-point operations."""

    @abstractmethod
    def operands(self, space: Space) -> tuple[MatrixOperand, ...]:
        """Return the operands, and last the output."""

    def lanes_in(self, space: Space) -> int:
        """Return the blocks of the trace that share a wave's pages."""
        return self.lanes

    def launches(self, space: Space) -> Launches:
        grid, depth, flops = self.product()
        shape = ProductShape(depth, self.chunk, self.wave, self.lanes_in(space), self.element)
        operands, pages = self.operands(space), max(o.pages for o in space.values())
        flops /= self.efficiency
        yield product_launch(self.kernel, grid, shape, operands, self.slots, flops, pages)


def product_launch(
    kernel: str,
    grid: TileGrid,
    shape: ProductShape,
    operands: tuple[MatrixOperand, ...],
    slots: int,
    flops: float,
    pages: int,
) -> Launch:
    """Return one product as a launch.

    ``slots``: the slots that a thread block takes. ``pages``: the most pages of an operand.
    """
    wave = min(shape.wave, tile_count(grid))
    shape = shape._replace(wave=wave, lanes=min(shape.lanes, wave))
    reads, out = operands[:-1], operands[-1]
    panels_used, tiles_used = bytes_used(grid, shape, reads)
    tiles_used *= 2 if shape.added else 1
    intensity = flops / (panels_used.sum() + tiles_used)
    sharing = _sharing(grid, shape, reads, panels_used, out.site)
    count, most = -(-tile_count(grid) // wave), pages * (len(operands) + shape.added)
    touches = wave_segments(count, most, _fill, grid, shape, reads, out)
    width = max(1, slots * wave // shape.lanes)
    return Launch(kernel, touches, width, intensity, sharing=sharing)


def _sharing(
    grid: TileGrid, shape: ProductShape, reads: tuple[MatrixOperand, ...], used: Any, output: int
) -> tuple[float, ...]:
    """Return by access site how many tiles of a wave read each byte: what all tiles read over the
    bytes that waves ``used`` of each operand. Nobody shares the output.
    """
    asked, found = np.zeros(output + 1), np.zeros(output + 1)
    for read, bytes_ in zip(reads, used.tolist(), strict=True):
        asked[read.site] += shape.element * float(shape.depth) * panels_of_tiles(grid, read.which)
        found[read.site] += bytes_
    return tuple(np.where(found > 0, asked / np.maximum(found, 1), 1.0).tolist())


# ── Tiles of a wave


@jit
def tile_count(grid: Any) -> Any:
    """Return the thread blocks of the whole grid."""
    rows, columns = across(grid.height, grid.tall), across(grid.width, grid.wide)
    return rows * columns if grid.triangle == 0 else rows * (rows + 1) // 2


@jit
def tile_at(grid: Any, index: int) -> Any:
    """Return row and column, in tiles, of the tile that is taken as number ``index``."""
    rows, columns = across(grid.height, grid.tall), across(grid.width, grid.wide)
    if grid.triangle == 0:
        group = index // (grid.swizzle * columns)
        index -= group * grid.swizzle * columns
        together = min(grid.swizzle, rows - group * grid.swizzle)
        return group * grid.swizzle + index % together, index // together
    row, length = 0, columns if grid.triangle > 0 else 1
    while index >= length:
        index -= length
        row, length = row + 1, length - grid.triangle
    return row, index + row if grid.triangle > 0 else index


@jit
def cover(grid: Any, first: int, stop: int) -> Any:
    """Return where the tiles ``first`` to ``stop`` lie.

    That is the first and the last tile column of each tile row, and which columns are used.
    """
    rows, columns = across(grid.height, grid.tall), across(grid.width, grid.wide)
    low, high = np.full(rows, columns), np.full(rows, -1)  # a row without tiles has high < 0
    used = np.zeros(columns, np.bool_)
    for index in range(first, stop):
        row, column = tile_at(grid, index)
        low[row], high[row] = min(low[row], column), max(high[row], column)
        used[column] = True
    return low, high, used


@jit
def columns_of(grid: Any, low: Any, high: Any, row: int) -> Any:
    """Return the columns, in floats, that a wave's tiles have in one row of the output."""
    tile = row // grid.tall
    if high[tile] < 0:
        return 0, 0
    first, stop = low[tile] * grid.wide, min(grid.width, (high[tile] + 1) * grid.wide)
    if grid.triangle > 0:
        first = max(first, row)
    if grid.triangle < 0:
        stop = min(stop, row + 1)
    return first, stop


# ── Pages of a wave


@jit
def _fill(
    columns: Any, needs: Any, number: int, enough: int, grid: Any, shape: Any, reads: Any, out: Any
) -> Any:
    """Fill in waves from ``number`` on, until there are ``enough`` touches; see ``waves.Fill``."""
    block = touch = 0
    count = tile_count(grid)
    turn = across(shape.depth, shape.chunk)  # steps
    last = turn * (reads[len(reads) - 1].turn + 1)
    while number * shape.wave < count and touch < enough:
        low, high, used = cover(grid, number * shape.wave, min(count, (number + 1) * shape.wave))
        end = 0
        for read in reads:
            spans = panels(grid, read.which, high, used)
            if read.along:
                end = _add_along(needs, end, read, shape, spans, read.turn * turn)
            else:
                end = _add_down(needs, end, read, shape, spans, read.turn * turn)
        if shape.added:
            own = end
            end = _add_output(needs, own, out, grid, low, high, last, shape.element)
            needs[own:end].write[:] = 0
        stored = last + shape.added
        end = _add_output(needs, end, out, grid, low, high, stored, shape.element)
        block, touch = distribute(needs, end, stored + 1, shape.lanes, columns, block, touch)
        number += 1
    return number, block, touch


@jit
def panels(grid: Any, which: int, high: Any, used: Any) -> Any:
    """Return the panels a wave needs, as pairs of first and stop, in floats, in rising order."""
    picked = used.copy() if which == COLUMNS else high >= 0
    if which == BOTH:
        for tile in range(len(used)):
            picked[tile] |= used[tile]
    size, limit = (grid.wide, grid.width) if which == COLUMNS else (grid.tall, grid.height)
    spans = np.empty((len(picked), 2), np.int64)
    n = 0
    for tile in range(len(picked)):
        if picked[tile]:
            if n == 0 or spans[n - 1, 1] < tile * size:
                spans[n, 0] = tile * size
                n += 1
            spans[n - 1, 1] = min(limit, (tile + 1) * size)
    return spans[:n]


@jit
def _add_down(needs: Any, end: int, read: Any, shape: Any, spans: Any, step: int) -> Any:
    """Add columns of an operand, from row to row, ``chunk`` rows in a step."""
    own = end
    for row in range(shape.depth):
        at = read.origin + row * read.pitch
        for i in range(len(spans)):
            low, high = at + shape.element * spans[i, 0], at + shape.element * spans[i, 1]
            end = add_bytes(needs, own, end, read, low, high, step + row // shape.chunk)
    return end


@jit
def _add_along(needs: Any, end: int, read: Any, shape: Any, spans: Any, step: int) -> Any:
    """Add rows of an operand, all from left to right, ``chunk`` columns in a step.

    A page's step is that of its leftmost column.
    """
    own = end
    for i in range(len(spans)):
        for row in range(spans[i, 0], spans[i, 1]):
            begin = low = read.origin + row * read.pitch
            stop = begin + shape.element * shape.depth
            while low < stop:
                high = min(stop, (low // read.page + 1) * read.page)
                now = step + (low - begin) // (shape.element * shape.chunk)
                end = add_bytes(needs, own, end, read, low, high, now)
                needs[end - 1].step = min(needs[end - 1].step, now)
                low = high
    return end


@jit
def _add_output(
    needs: Any, end: int, out: Any, grid: Any, low: Any, high: Any, step: int, element: int
) -> Any:
    """Add the wave's tiles of the output, after the last step."""
    own = end
    for tile in range(len(low)):
        if high[tile] >= 0:
            for row in range(tile * grid.tall, min(grid.height, (tile + 1) * grid.tall)):
                first, stop = columns_of(grid, low, high, row)
                at = out.origin + row * out.pitch
                begin, behind = at + element * first, at + element * stop
                end = add_bytes(needs, own, end, out, begin, behind, step)
    return end


def panels_of_tiles(grid: TileGrid, which: int) -> float:
    """Return the widths of the panels that all tiles read, added up, in elements.

    >>> panels_of_tiles(TileGrid(256, 512, 128, 128), ROWS)  # two rows of four tiles
    1024.0
    """
    rows, columns = across(grid.height, grid.tall), across(grid.width, grid.wide)
    tall = np.minimum(grid.tall, grid.height - grid.tall * np.arange(rows))
    wide = np.minimum(grid.wide, grid.width - grid.wide * np.arange(columns))
    in_row, in_column = np.full(rows, columns), np.full(columns, rows)  # tiles
    if grid.triangle:
        rising = np.arange(rows) + 1
        in_row, in_column = (rising[::-1], rising) if grid.triangle > 0 else (rising, rising[::-1])
    widths = {ROWS: (in_row * tall).sum(), COLUMNS: (in_column * wide).sum()}
    return float(sum(widths.values()) if which == BOTH else widths[which])


@jit
def bytes_used(grid: Any, shape: Any, reads: Any) -> Any:
    """Return the bytes of each operand, and of the output, that all waves use: floats.

    Together they are the sum of the trace's bytes, but for an output that is loaded as well.
    """
    elements = 0.0
    panels_used = np.zeros(len(reads))
    count = tile_count(grid)
    for first in range(0, count, shape.wave):
        low, high, used = cover(grid, first, min(count, first + shape.wave))
        for i, read in enumerate(reads):
            spans = panels(grid, read.which, high, used)
            panels_used[i] += float(shape.depth) * (spans[:, 1] - spans[:, 0]).sum()
        for tile in range(len(low)):
            if high[tile] >= 0:
                for row in range(tile * grid.tall, min(grid.height, (tile + 1) * grid.tall)):
                    begin, stop = columns_of(grid, low, high, row)
                    elements += stop - begin
    return shape.element * panels_used, shape.element * elements
