"""Applications on grids, against their kernels in plain Python, thread by thread."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from papers.cppe.applications.python_kernels import Block, check, small
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Trace
from workloads.read_traces import program, read


def grid(trace: Trace, wide: int, tall: int) -> Iterator[tuple[Block, int, int]]:
    """Yield thread blocks, blockIdx.x fastest."""
    for by in range(tall):
        for bx in range(wide):
            yield Block(trace), bx, by


@pytest.mark.slow
@pytest.mark.parametrize(("n", "iterations", "pyramid"), [(40, 2, 2), (33, 3, 2), (12, 5, 1)])
def test_hotspot(n: int, iterations: int, pyramid: int) -> None:
    _, trace = small("cppe-HOT", bytes=12 * n * n, iterations=iterations, pyramid=pyramid)

    def launch(source: int, steps: int) -> Iterator[Block]:
        tiles = -(-n // (16 - 2 * pyramid))
        for block, bx, by in grid(trace, tiles, tiles):
            for ty in range(16):
                for tx in range(16):
                    x, y = ((16 - 2 * steps) * b - pyramid + t for b, t in ((bx, tx), (by, ty)))
                    if 0 <= x < n and 0 <= y < n:
                        block.use(f"temp_{source}", y * n + x)
                        block.use("power", y * n + x)
                        if steps <= tx < 16 - steps and steps <= ty < 16 - steps:
                            block.use(f"temp_{1 - source}", y * n + x, write=True)
            yield block

    done = range(0, iterations, pyramid)
    check(trace, [launch(i % 2, min(pyramid, iterations - at)) for i, at in enumerate(done)])


@pytest.mark.parametrize("n", [3, 40, 65])
def test_conv2d(n: int) -> None:
    _, trace = small("cppe-2DC", bytes=8 * n * n)
    blocks = []
    for block, bx, by in grid(trace, -(-n // 32), -(-n // 8)):
        for i in range(8 * by, min(n - 1, 8 * by + 8)):
            for j in range(32 * bx, min(n - 1, 32 * bx + 32)):
                if i > 0 and j > 0:
                    for p in (-1, 0, 1):
                        for q in (-1, 0, 1):
                            block.use("A", (i + p) * n + j + q)
                    block.use("B", i * n + j, write=True)
        blocks.append(block)
    check(trace, [blocks])


@pytest.mark.parametrize("n", [4, 35])
def test_conv3d(n: int) -> None:
    workload, trace = small("cppe-3DC", bytes=4 * n * n * (2 * n - 2))
    assert (workload.n, workload.planes) == (n, n)

    def at(i: int, j: int, k: int) -> int:
        return (i * n + j) * n + k

    def launch(i: int) -> Iterator[Block]:
        for block, bx, by in grid(trace, -(-n // 32), -(-n // 8)):
            for j in range(max(1, 8 * by), min(n - 1, 8 * by + 8)):
                for k in range(max(1, 32 * bx), min(n - 1, 32 * bx + 32)):
                    for plane in (i - 1, i + 1):
                        block.use("A", at(plane, j - 1, k - 1))
                        for q in (-1, 0, 1):
                            block.use("A", at(plane, j + q, k + 1))
                    for q in (-1, 0, 1):
                        block.use("A", at(i, j + q, k))
                    block.use("B", at(i - 1, j, k), write=True)
            yield block

    check(trace, [launch(i) for i in range(1, n - 1)])


@pytest.mark.parametrize("n", [5, 40])
def test_srad(n: int) -> None:
    _, trace = small("cppe-SRD", bytes=24 * n * n, iterations=2)

    def launch(kernel: int) -> Iterator[Block]:
        for block, bx, by in grid(trace, -(-n // 16), -(-n // 16)):
            for y in range(16 * by, min(n, 16 * by + 16)):
                for x in range(16 * bx, min(n, 16 * bx + 16)):
                    p, south, east = y * n + x, min(n - 1, y + 1) * n + x, y * n + min(n - 1, x + 1)
                    if kernel == 1:
                        for near in (p, south, east, max(0, y - 1) * n + x, y * n + max(0, x - 1)):
                            block.use("J", near)
                        for name in "CEWSN":
                            block.use(name, p, write=True)
                    else:
                        for near in (p, south, east):
                            block.use("C", near)
                        for name in "NSWE":
                            block.use(name, p)
                        block.change("J", p)
            yield block

    check(trace, [launch(kernel) for kernel in (1, 2, 1, 2)])


@pytest.mark.parametrize(("n", "layers"), [(10, 8), (70, 3)])
def test_hotspot3d(n: int, layers: int) -> None:
    _, trace = small("cppe-HSD", bytes=12 * layers * n * n, iterations=2, layers=layers)

    def launch(source: int) -> Iterator[Block]:
        for block, bx, by in grid(trace, -(-n // 64), -(-n // 4)):
            for y in range(4 * by, min(n, 4 * by + 4)):
                for x in range(64 * bx, min(n, 64 * bx + 64)):
                    for z in range(layers):
                        c = (z * n + y) * n + x
                        block.use(f"t_{source}", c)
                        for dz, dy, dx in (
                            (1, 0, 0),
                            (-1, 0, 0),
                            (0, 1, 0),
                            (0, -1, 0),
                            (0, 0, 1),
                            (0, 0, -1),
                        ):
                            if 0 <= z + dz < layers and 0 <= y + dy < n and 0 <= x + dx < n:
                                block.use(f"t_{source}", c + (dz * n + dy) * n + dx)
                        block.use("power", c)
                        block.use(f"t_{1 - source}", c, write=True)
            yield block

    check(trace, [launch(0), launch(1)])


@pytest.mark.parametrize(("n", "planes"), [(12, 4), (70, 3)])
def test_stencil(n: int, planes: int) -> None:
    _, trace = small("cppe-STN", bytes=8 * planes * n * n, iterations=2, planes=planes)

    def launch(source: str, target: str) -> Iterator[Block]:
        for block, bx, by in grid(trace, -(-n // 64), -(-n // 4)):
            for j in range(4 * by, min(n, 4 * by + 4)):
                for i in range(64 * bx, min(n, 64 * bx + 64)):
                    for k in range(planes):
                        at = (k * n + j) * n + i
                        block.use(source, at)
                        if 0 < k < planes - 1 and 0 < i < n - 1 and 0 < j < n - 1:
                            for near in (at - 1, at + 1, at - n, at + n):
                                block.use(source, near)
                            block.use(target, at, write=True)
            yield block

    check(trace, [launch("even", "odd"), launch("odd", "even")])


@pytest.mark.parametrize(("cols", "rows"), [(48, 48), (32, 64)])
def test_nw(cols: int, rows: int) -> None:
    workload, trace = small("cppe-NW", bytes=8 * (cols + 1) * (rows + 1))
    cols, rows = workload.cols, workload.rows
    wide, tall, pitch = cols // 16, rows // 16, cols + 1

    def launch(diagonal: int) -> Iterator[Block]:
        for x in range(wide):
            y = diagonal - x
            if 0 <= y < tall:
                block, at = Block(trace), pitch * 16 * y + 16 * x
                block.use("matrix", at)
                for t in range(16):
                    block.use("matrix", at + pitch * (t + 1))
                    block.use("matrix", at + t + 1)
                    for tx in range(16):
                        block.use("reference", at + pitch * (t + 1) + tx + 1)
                        block.use("matrix", at + pitch * (t + 1) + tx + 1, write=True)
                yield block

    check(trace, [launch(d) for d in range(wide + tall - 1)])


def test_nw_touches_every_second_page() -> None:
    launch = read(program("cppe-NW", Geometry(4096, 65536)))[0]
    assert len(launch.blocks()) == 1
    for reference in (0, 1):
        pages = np.unique(launch.page[launch.reference == reference])
        # 1 where the 4 bytes by which a row is longer than two pages add up to a page
        assert set(np.diff(pages)) <= {1, 2}
        assert np.mean(np.diff(pages) == 2) > 0.9
