"""How many thread blocks use what a wave uses, against a count of what each of them reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tidegate.papers.observuvm.applications.btree import NODE, BTree
from tidegate.papers.observuvm.applications.networks import AlexNet
from tidegate.papers.observuvm.applications.products import GMM, GMV, HEL, SR2, SRK
from tidegate.trace.trace import Launch
from tidegate.workloads.matmul import TILE, MatMul
from tidegate.workloads.matrix_products import (
    BOTH,
    COLUMNS,
    ROWS,
    MatrixProduct,
    tile_at,
    tile_count,
)
from tidegate.workloads.program import Space


def crossing(launch: Launch) -> Any:
    """Return by access site the bytes that cross the link if everything is far."""
    found = sum(np.bincount(s.reference, s.bytes, minlength=8) for s in launch.segments)
    found[: len(launch.sharing)] *= launch.sharing
    return found


def read_by_tiles(work: MatrixProduct, space: Space) -> Any:
    """Return the bytes that tiles read by access site, tile by tile."""
    grid, depth, _ = work.product()
    found = np.zeros(8)
    for index in range(tile_count(grid)):
        row, column = tile_at(grid, index)
        tall = min(grid.tall, grid.height - row * grid.tall)
        wide = min(grid.wide, grid.width - column * grid.wide)
        for read in work.operands(space)[:-1]:
            width = {ROWS: tall, COLUMNS: wide, BOTH: tall + wide}[read.which]
            found[read.site] += work.element * depth * width
    return found


@pytest.mark.parametrize("kind", [GMM, GMV, HEL, SRK, SR2])
def test_a_product_has_what_its_tiles_read(kind: type[MatrixProduct]) -> None:
    work = kind(bytes=8_000_000, wave=7)
    trace = work.trace()
    space = Space(trace.geometry, trace.objects)
    launch = next(iter(work.launches(space)))
    expected, output = read_by_tiles(work, space), len(launch.sharing) - 1
    assert launch.sharing[output] == 1
    assert crossing(launch)[:output] == pytest.approx(expected[:output], rel=1e-6)


def test_matmul_has_what_its_tiles_read() -> None:
    work = MatMul(bytes=8_000_000, wave=7)
    n, tiles = work.n, -(-work.n // TILE)
    (launch,) = work.trace().launches()
    a, b, c = crossing(launch)[:3]
    assert a == pytest.approx(4 * n * n * tiles)  # the rows of A, once for every tile column
    assert b == pytest.approx(4 * n * n * tiles)
    assert c == 4 * n * n


def test_weights_of_a_layer_are_read_by_all_its_blocks_or_once_for_every_image() -> None:
    work = AlexNet(bytes=40_000_000)
    trace = work.trace()
    space = Space(trace.geometry, trace.objects)
    for layer, launch in zip(work.layers, trace.launches(), strict=True):
        if layer.weights:
            first, stop, whole = layer.part
            part = space[layer.weights].bytes * (stop - first) / whole
            times = work.images * (layer.blocks if layer.spread else 1)
            assert crossing(launch)[1] == pytest.approx(part * times, rel=0.01)


def test_look_ups_read_one_node_of_each_level() -> None:
    work = BTree(bytes=8_000_000)
    (launch,) = work.trace().launches()
    expected = NODE * work.queries * len(work.levels())
    assert crossing(launch)[1] == pytest.approx(expected, rel=0.02)
