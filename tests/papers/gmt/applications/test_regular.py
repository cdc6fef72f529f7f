"""Applications on vectors and grids, against their kernels in plain Python, element by element."""

from __future__ import annotations

import numpy as np
import pytest

from papers.gmt.applications.python_kernels import PAGE, Used, check, small
from tidegate.papers.gmt.applications.array_walks import BOX, Stretch, lockstep
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Object, lay_out
from tidegate.workloads.program import Space
from workloads.read_traces import read


def space(**sizes: int) -> Space:
    objects: tuple[Object, ...] = lay_out(sizes, Geometry(PAGE, PAGE))
    return Space(Geometry(PAGE, PAGE), objects)


def test_lockstep_enters_pages_as_it_uses_them() -> None:
    (segment,) = lockstep(
        space(a=1024, b=512), [Stretch("a", 0, 1024), Stretch("b", 128, 384, write=True)]
    )
    # of b, a step of a page of a uses 64 bytes: two steps in its first page, two in its second
    assert [
        list(segment.page[i:j]) for i, j in zip(segment.starts, segment.starts[1:], strict=False)
    ] == [[0, 4], [1], [2, 5], [3]]
    assert segment.bytes.tolist() == [256, 128, 256, 256, 128, 256]
    assert segment.write.tolist() == [0, 1, 0, 0, 1, 0]


def test_lockstep_merges_stretches_that_share_a_page() -> None:
    (segment,) = lockstep(space(a=200), [Stretch("a", 0, 100), Stretch("a", 100, 200, write=True)])
    assert (segment.page.tolist(), segment.bytes.tolist(), segment.write.tolist()) == (
        [0],
        [200],
        [1],
    )


def test_lockstep_is_the_same_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    here = space(a=5000, b=1700, c=9001)
    stretches = [
        Stretch("a", 33, 4900),
        Stretch("b", 0, 1700, write=True),
        Stretch("c", 1000, 9001),
    ]
    (whole,) = lockstep(here, stretches)
    monkeypatch.setattr("tidegate.papers.gmt.applications.array_walks.SEGMENT_TOUCHES", 12)
    pieces = list(lockstep(here, stretches))
    assert len(pieces) > 5
    for column in ("page", "write", "bytes", "reference"):
        np.testing.assert_array_equal(
            np.concatenate([getattr(p, column) for p in pieces]), getattr(whole, column)
        )
    assert sum(p.blocks for p in pieces) == whole.blocks


@pytest.mark.parametrize("inputs", [1, 5])
def test_multivectoradd(inputs: int) -> None:
    n = 500
    _, trace = small("gmt-MultiVectorAdd", bytes=8 * n * (inputs + 1), inputs=inputs)
    expected = []
    for k in range(inputs):
        used = Used(trace)
        for i in range(n):
            used.use(f"in_{k}", i, i / n, size=8)
            used.use("out", i, i / n, write=True, size=8)
        expected.append(used)
    check(trace, expected, apart=1)


@pytest.mark.parametrize("n", [5, 40])
def test_srad(n: int) -> None:
    _, trace = small("gmt-Srad", bytes=24 * n * n, iterations=2)
    expected = []
    for kernel in (1, 2, 1, 2):
        used = Used(trace)
        for p in range(n * n):
            y, x = divmod(p, n)
            along = y // 16 * 16 / n  # tiles of 16 rows
            north, south, west, east = (
                max(0, y - 1),
                min(n - 1, y + 1),
                max(0, x - 1),
                min(n - 1, x + 1),
            )
            if kernel == 1:
                for q in (p, north * n + x, south * n + x, y * n + west, y * n + east):
                    used.use("J", q, along)
                for name in "NSWEC":
                    used.use(name, p, along, write=True)
            else:
                for q in (p, south * n + x, y * n + east):
                    used.use("C", q, along)
                for name in "NSWE":
                    used.use(name, p, along)
                used.use("J", p, along, write=True)
        expected.append(used)
    check(trace, expected, apart=16 * 4 * n // PAGE + 2)


@pytest.mark.parametrize("n", [5, 40])
def test_hotspot(n: int) -> None:
    _, trace = small("gmt-Hotspot", bytes=12 * n * n, iterations=3)
    expected = []
    for launch in range(3):
        used = Used(trace)
        for p in range(n * n):
            y, x = divmod(p, n)
            along = y // 16 * 16 / n
            for q in (
                p,
                max(0, y - 1) * n + x,
                min(n - 1, y + 1) * n + x,
                y * n + max(0, x - 1),
                y * n + min(n - 1, x + 1),
            ):
                used.use(f"temp_{launch % 2}", q, along)
            used.use("power", p, along)
            used.use(f"temp_{1 - launch % 2}", p, along, write=True)
        expected.append(used)
    check(trace, expected, apart=16 * 4 * n // PAGE + 2)


def test_pathfinder() -> None:
    cols, pyramid, launches = 640, 3, 4  # whole pages to a row, so that rows share none
    _, trace = small(
        "gmt-Pathfinder",
        bytes=4 * cols * (pyramid * launches + 2),
        pyramid=pyramid,
        iterations=launches,
    )
    expected = []
    for launch in range(launches):
        used = Used(trace)
        for x in range(cols):
            for near in range(max(0, x - pyramid), min(cols, x + pyramid + 1)):
                used.use(f"result_{launch % 2}", near, x / cols)
            for i in range(pyramid):
                for near in range(max(0, x - pyramid + i + 1), min(cols, x + pyramid - i)):
                    used.use("wall", cols * (pyramid * launch + i) + near, x / cols)
            used.use(f"result_{1 - launch % 2}", x, x / cols, write=True)
        expected.append(used)
    check(trace, expected, apart=1)


def test_pathfinders_rows_share_pages_at_their_ends() -> None:
    # 9.4 pages to a row
    _, trace = small("gmt-Pathfinder", bytes=4 * 600 * 14, pyramid=3, iterations=4)
    launch = read(trace)[0]
    wall = launch.page[launch.reference == 2].tolist()
    assert len(wall) == len(set(wall)) + 2, (
        "where a row ends and the next begins, one page is used first and last"
    )


def test_backprop() -> None:
    workload, trace = small("gmt-Backprop", bytes=30_000, iterations=2)
    blocks = workload.sizes()["hidden_partial_sum"] // 64
    assert blocks > 8
    expected = []
    for kernel in ("forward", "adjust") * 2:
        used = Used(trace)
        for by in range(blocks):
            along = by / blocks
            for ty in range(16):
                used.use("input", 16 * by + ty + 1, along)
                for tx in range(16):
                    index = 17 * (16 * by + ty + 1) + tx + 1
                    used.use("input_hidden", index, along, write=True)
                    if kernel == "forward":
                        used.use("hidden_partial_sum", 16 * by + tx, along, write=True)
                    else:
                        used.use("hidden_delta", tx + 1, along)
                        used.use("input_prev_weights", index, along, write=True)
        expected.append(used)
    check(trace, expected, apart=16 * 17 * 4 // PAGE + 2)


@pytest.mark.parametrize(
    ("boxes", "side", "wave"), [(400, 3, 50), (256, 2, 32), (300, 4, 300), (333, 5, 100), (1, 3, 4)]
)
def test_lavamd(boxes: int, side: int, wave: int) -> None:
    page = 8192  # as large as what a wave leaves out between its first neighbour and its last
    _, trace = small("gmt-LavaMD", page, bytes=boxes * sum(BOX.values()), side=side, wave=wave)
    (launch,) = read(trace)
    visits = [
        (p, write, reference) for block in launch.blocks() for p, write, _, reference in block
    ]
    for low in range(0, boxes, wave):
        used = Used(trace)
        for home in range(low, min(low + wave, boxes)):
            used.use("box", home, size=BOX["box"])
            used.use("fv", home, write=True, size=BOX["fv"])
            x, y, z = home % side, home // side % side, home // side**2
            for other in range(boxes):
                if (
                    max(
                        abs(other % side - x),
                        abs(other // side % side - y),
                        abs(other // side**2 - z),
                    )
                    <= 1
                ):
                    used.use("rv", other, size=BOX["rv"])
                    used.use("qv", other, size=BOX["qv"])
        now, visits = visits[: len(used.first)], visits[len(used.first) :]
        assert set(now) == used.visits()
    assert not visits
