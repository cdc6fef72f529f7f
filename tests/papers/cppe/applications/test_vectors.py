"""Applications on vectors, tables and dense matrices, against plain Python, thread by thread."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from papers.cppe.applications.python_kernels import Block, check, small
from tidegate.trace.geometry import Geometry
from workloads.read_traces import program, read


def test_backprop() -> None:
    workload, trace = small("cppe-BKP", bytes=8000)
    assert workload.blocks > 2

    def launch(kernel: str) -> Iterator[Block]:
        for by in range(workload.blocks):
            block = Block(trace)
            for ty in range(16):
                for tx in range(16):
                    index = 17 * (16 * by + ty + 1) + tx + 1
                    block.use("input", 16 * by + ty + 1)
                    block.change("input_hidden", index)
                    if kernel == "forward":
                        block.use("hidden_partial_sum", 16 * by + ty, write=True)
                    else:
                        block.use("hidden_delta", tx + 1)
                        block.change("input_prev_weights", index)
                        if by == 0 and ty == 0:
                            block.change("input_hidden", tx + 1)
                            block.change("input_prev_weights", tx + 1)
            yield block

    check(trace, [launch("forward"), launch("adjust")])


def test_pathfinder() -> None:
    rows, pyramid, cols = 12, 4, 700
    _, trace = small("cppe-PAT", bytes=4 * cols * (rows + 1), rows=rows, pyramid=pyramid)

    def launch(number: int, done: int) -> Iterator[Block]:
        steps = min(pyramid, rows - 1 - done)
        for bx in range(-(-cols // (256 - 2 * pyramid))):
            block = Block(trace)
            for tx in range(256):
                x = (256 - 2 * steps) * bx - pyramid + tx
                if 0 <= x < cols:
                    block.use(f"result_{number % 2}", x)
                    for i in range(steps):
                        if i < tx < 255 - i:
                            block.use("wall", cols * (done + i) + x)
                    if steps <= tx < 256 - steps:
                        block.use(f"result_{1 - number % 2}", x, write=True)
            yield block

    check(trace, [launch(number, done) for number, done in enumerate(range(0, rows - 1, pyramid))])


@pytest.mark.parametrize("n", [37, 150])
def test_dwt(n: int) -> None:
    _, trace = small("cppe-DWT", bytes=27 * n * n, levels=2)

    def split() -> Iterator[Block]:
        for first in range(0, n * n, 256):
            block = Block(trace)
            for i in range(first, min(n * n, first + 256)):
                block.use("src", i, size=3)
                for colour in "rgb":
                    block.use(colour, i, write=True)
            yield block

    def transform(colour: str, side: int) -> Iterator[Block]:
        steps, low, high = -(-side // 120), -(-side // 2), side // 2
        bands = {(0, 0): (0, low), (0, 1): (low * low, high), (1, 0): (low * low + high * low, low)}
        bands[1, 1] = low * low + 2 * high * low, high
        for top in range(0, side, 8 * steps):
            for left in range(0, side, 64):
                block = Block(trace)
                for y in range(max(0, top - 2), min(side, top + 8 * steps + 1)):
                    for x in range(max(0, left - 2), min(side, left + 65)):
                        block.use(colour, side * y + x)
                for y in range(top, min(side, top + 8 * steps)):
                    for x in range(left, min(side, left + 64)):
                        offset, pitch = bands[y % 2, x % 2]
                        block.use(f"{colour}_out", offset + y // 2 * pitch + x // 2, write=True)
                yield block

    check(
        trace, [split(), *(transform(colour, side) for colour in "rgb" for side in (n, -(-n // 2)))]
    )


def test_kmeans() -> None:
    points, features, clusters = 600, 5, 3
    size = 4 * points * (2 * features + 1)
    _, trace = small("cppe-KMN", bytes=size, features=features, clusters=clusters, iterations=2)

    def launch(kernel: str) -> Iterator[Block]:
        for first in range(0, points, 256):
            block, mine = Block(trace), range(first, min(points, first + 256))
            if kernel == "invert":
                for p in mine:
                    for i in range(features):
                        block.use("feature_flipped", features * p + i)
                        block.use("feature", p + points * i, write=True)
            else:
                for _ in range(clusters):
                    block.step()
                    for p in mine:
                        for i in range(features):
                            block.use("feature", p + points * i)
                for p in mine:
                    block.use("membership", p, write=True)
            yield block

    check(trace, [launch("invert"), launch("assign"), launch("assign")])


@pytest.mark.slow
@pytest.mark.parametrize("n", [11, 14])
def test_sad(n: int) -> None:
    workload, trace = small("cppe-SAD", page=4096, bytes=89_872 * n + 5632 * -(-n // 11))
    assert workload.macroblocks == n
    begins, each = (
        dict(zip(range(1, 8), (0, 1, 3, 5, 9, 17, 25), strict=True)),
        {1: 1, 2: 2, 3: 2, 4: 4, 5: 8, 6: 8, 7: 16},
    )

    def vectors(block: Block, kind: int, m: int, write: bool, positions: range) -> None:
        for i in range(each[kind]):
            for position in positions:
                block.use(
                    "sads", (begins[kind] * n + each[kind] * m + i) * 1096 + position, write, size=2
                )

    def calc() -> Iterator[Block]:
        for y in range(4 * -(-n // 11)):
            for x in range(44):
                block, m = Block(trace), y // 4 * 11 + x // 4
                if m < n:
                    for pixel in range(16):
                        block.use("cur", (4 * y + pixel // 4) * 176 + 4 * x + pixel % 4, size=2)
                    for position in range(1096):
                        at = (25 * n + 16 * m + 4 * (y % 4) + x % 4) * 1096 + position
                        block.use("sads", at, write=True, size=2)
                yield block

    def larger(read_kind: int, written: tuple[int, ...]) -> Iterator[Block]:
        for m in range(n):
            block = Block(trace)
            for step in range(17):  # 64 places each, in all vectors
                block.step()
                positions = range(64 * step, 64 * (step + 1) if step < 16 else 1090)
                vectors(block, read_kind, m, False, positions)
                for kind in written:
                    vectors(block, kind, m, True, positions)
            yield block

    check(trace, [calc(), larger(7, (6, 5, 4)), larger(4, (3, 2, 1))])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cppe-MVT", "cppe-BIC"])
def test_matrix_vector(name: str) -> None:
    n = 300
    _, trace = small(name, bytes=4 * (n * n + 4 * n))

    def launch(matrix: str, vector: str, out: str, rows: bool) -> Iterator[Block]:
        for first in range(0, n, 256):
            block = Block(trace)
            for i in range(first, min(n, first + 256)) if name == "cppe-BIC" else ():
                block.use(out, i, write=True)
            for step in range(0, n, 32):
                block.step()
                for i in range(first, min(n, first + 256)):
                    for j in range(step, min(n, step + 32)):
                        block.use(matrix, i * n + j if rows else j * n + i)
                        block.use(vector, j)
                    block.change(out, i)
            yield block

    if name == "cppe-MVT":
        check(trace, [launch("a", "y1", "x1", True), launch("a", "y2", "x2", False)])
    else:
        check(trace, [launch("A", "r", "s", False), launch("A", "p", "q", True)])


@pytest.mark.parametrize("name", ["cppe-MVT", "cppe-BIC"])
def test_a_matrix_is_touched_every_fourth_page(name: str) -> None:
    trace = program(name, Geometry(4096, 65536))
    for launch in read(trace):
        block = [page for page, _, _, reference in launch.blocks()[1] if reference == 0]
        turn = block[: min(256, len(block))]
        assert set(np.diff(turn)) == {4}


def test_mriq() -> None:
    points, samples = 700, 1500
    workload, trace = small("cppe-MRQ", bytes=4 * (5 * points + 3 * samples), samples=samples)
    assert workload.points == points

    def phi() -> Iterator[Block]:
        for first in range(0, samples, 512):
            block = Block(trace)
            for i in range(first, min(samples, first + 512)):
                block.use("phiR", i)
                block.use("phiI", i)
                block.use("phiMag", i, write=True)
            yield block

    def q() -> Iterator[Block]:
        for first in range(0, points, 256):
            block, own = Block(trace), range(first, min(points, first + 256))
            for i in own:
                for name in ("x", "y", "z", "Qr", "Qi"):
                    block.use(name, i)
            block.step()  # after the loop over the samples
            for i in own:
                for name in ("Qr", "Qi"):
                    block.use(name, i, write=True)
            yield block

    check(trace, [phi(), q(), q()])


def test_sgemm() -> None:
    workload, trace = small("cppe-SGM", bytes=300_000)
    m, n, k = workload.shape
    blocks = []
    for by in range(n // 16):
        for bx in range(m // 128):
            block = Block(trace)
            for depth in range(k):
                for row in range(128 * bx, 128 * bx + 128):
                    block.use("A", row + depth * m)
                for column in range(16 * by, 16 * by + 16):
                    block.use("B", column + depth * n)
            for column in range(16 * by, 16 * by + 16):
                for row in range(128 * bx, 128 * bx + 128):
                    block.change("C", row + column * m)
            blocks.append(block)
    check(trace, [blocks])


def test_sgemm_is_parboils_medium_input() -> None:
    assert program("cppe-SGM").workload.shape == (1024, 1056, 992)
