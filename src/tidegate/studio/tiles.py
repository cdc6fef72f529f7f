"""Tiles: a view of a recording as pixels, one byte each.

A view is a rectangle of the whole run: x from 0 to 1 over touches or time, y from 0 to 1 over
regions. A pixel that covers several cells has their sum (of pages held: their share of all); a
cell that covers several pixels is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit_unlocked
from tidegate.errors import TidegateError, UnknownName
from tidegate.simulation.recorded import Recording
from tidegate.simulation.recording import HELD

MOST_PIXELS = 4096  # each way
AXES = ("touches", "time")
ROUNDING = 1e-6  # of a cell: an edge that is meant to be whole must not fall below
MIDDLE = 128  # of a difference: no difference


@dataclass(frozen=True)
class View:
    """A part of a run, in so many pixels."""

    x0: float = 0.0
    x1: float = 1.0
    y0: float = 0.0
    y1: float = 1.0
    width: int = 1024
    height: int = 512
    axis: str = "touches"

    def __post_init__(self) -> None:
        if self.axis not in AXES:
            raise UnknownName("axis", self.axis, AXES)
        for low, high, name in ((self.x0, self.x1, "x"), (self.y0, self.y1, "y")):
            if not 0 <= low < high <= 1:
                raise TidegateError(
                    f"{name}0 and {name}1 must rise within 0 to 1, got {low} and {high}"
                )
        for name in ("width", "height"):
            if not 1 <= getattr(self, name) <= MOST_PIXELS:
                raise TidegateError(
                    f"{name} must be from 1 to {MOST_PIXELS} pixels, got {getattr(self, name)}"
                )


@dataclass(frozen=True)
class Whole:
    """How much a whole run is: what 1 means on each axis."""

    touches: int
    time: float
    regions: int


@dataclass(frozen=True)
class Tile:
    """Pixels from the top, a byte each: 0 is nothing, 255 is ``top``."""

    pixels: NDArray[np.uint8]
    top: float


def whole_of(recording: Recording) -> Whole:
    """Return the extent of a run, from its whole recording."""
    return Whole(recording.last_touch, float(recording.books["time"][-1]), recording.regions)


def tile(recording: Recording, whole: Whole, layer: str, view: View) -> Tile:
    """Return a layer of a recording as pixels.

    Counts are shaded by their logarithm, pages held in proportion to all.
    """
    values = _values(recording, whole, layer, view)
    top = 1.0 if layer in HELD else float(values.max(initial=0.0))
    return Tile(_shade(values, top, layer not in HELD), top)


def difference(one: Recording, other: Recording, whole: Whole, layer: str, view: View) -> Tile:
    """Return how two recordings of one trace differ: 255 is more in the first, 1 in the other."""
    a, b = (_values(recording, whole, layer, view) for recording in (one, other))
    gap = a - b
    top = 1.0 if layer in HELD else float(np.abs(gap).max(initial=0.0))
    level = np.abs(gap) / top if layer in HELD else np.log1p(np.abs(gap)) / np.log1p(top or 1)
    return Tile((MIDDLE + np.sign(gap) * np.round(127 * level)).astype(np.uint8), top)


def _values(recording: Recording, whole: Whole, layer: str, view: View) -> NDArray[np.float32]:
    """Return the value of each pixel."""
    if layer not in recording.layers:
        raise UnknownName("layer", layer, recording.layers)
    bins = np.clip(
        (touches_of(recording, whole, view) - recording.first_touch) / recording.touches_per_bin,
        0,
        recording.bins,
    )
    regions = np.linspace(view.y0, view.y1, view.height + 1) * whole.regions
    cells = (regions - recording.first_region) / recording.regions_per_cell
    first_bin, last_bin = _spans(bins, recording.bins)
    first_cell, last_cell = _spans(np.clip(cells, 0, recording.cells), recording.cells)
    values = np.zeros((view.width, view.height), np.float32)
    share = recording.pages if layer in HELD else np.zeros(0, np.int64)
    fill(recording.layers[layer], first_bin, last_bin, first_cell, last_cell, share, values)
    return values.T


def touches_of(recording: Recording, whole: Whole, view: View) -> NDArray[np.float64]:
    """Return the touches at the edges of the view's columns."""
    edges = np.linspace(view.x0, view.x1, view.width + 1)
    if view.axis == "touches":
        return edges * whole.touches
    times = np.concatenate([[recording.before["time"]], recording.books["time"]])
    touches = np.concatenate([[recording.before["touches"]], recording.books["touches"]])
    return np.interp(edges * whole.time, times, touches)


def _spans(edges: NDArray[np.float64], most: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the first and the last+1 cell of each pixel; each has at least one."""
    whole = (edges + ROUNDING).astype(np.int64)
    first = np.minimum(whole[:-1], most - 1)
    return first, np.maximum(np.minimum(whole[1:], most), first + 1)


@jit_unlocked
def fill(
    layer: Any, bins: Any, bin_ends: Any, cells: Any, cell_ends: Any, pages: Any, values: Any
) -> None:
    """Sum the cells of each pixel; with ``pages``, as a share of the pages that could be near."""
    width, height = values.shape
    for x in range(width):
        if x > 0 and bins[x] == bins[x - 1] and bin_ends[x] == bin_ends[x - 1]:
            for y in range(height):
                values[x, y] = values[x - 1, y]
            continue
        for y in range(height):
            if y > 0 and cells[y] == cells[y - 1] and cell_ends[y] == cell_ends[y - 1]:
                values[x, y] = values[x, y - 1]
                continue
            total = 0
            for b in range(bins[x], bin_ends[x]):
                for c in range(cells[y], cell_ends[y]):
                    total += layer[b, c]
            value = np.float32(total)
            if pages.size > 0:
                room = 0
                for c in range(cells[y], cell_ends[y]):
                    room += pages[c]
                value /= np.float32(max(1, room * (bin_ends[x] - bins[x])))
            values[x, y] = value


def _shade(values: NDArray[np.float32], top: float, by_log: bool) -> NDArray[np.uint8]:
    """Return values as bytes; whatever is not 0 is at least 1."""
    if top <= 0:
        return np.zeros(values.shape, np.uint8)
    level = np.log1p(values) * (254 / np.log1p(top)) if by_log else values * (254 / top)
    return np.where(values > 0, level + 1, 0).astype(np.uint8)
