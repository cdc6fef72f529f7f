from __future__ import annotations

import numpy as np
import pytest

from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Trace
from workloads.read_traces import Read, Uses, in_order, pages_of, program, read


def brute_force(trace: Trace, n: int, source: str, target: str) -> list[Uses]:
    """Return what each band of 8 rows uses, from the kernel's index functions, thread by thread."""
    bands = []
    for top in range(0, n, 8):
        uses = Uses(trace)
        for y in range(top, min(n, top + 8)):
            for x in range(n):
                for dy, dx in ((0, 0), (0, -1), (0, 1), (-1, 0), (1, 0)):
                    at = min(max(y + dy, 0), n - 1) * n + min(max(x + dx, 0), n - 1)
                    uses.element(source, at, x // 32, reference=0)
                uses.element(target, y * n + x, x // 32, reference=1, write=1)
        bands.append(uses)
    return bands


def check_bands(launch: Read, bands: list[Uses], lanes: int) -> None:
    blocks = launch.blocks()
    for uses in bands:
        expected = uses.touches()
        mine, blocks = blocks[: min(lanes, len(expected))], blocks[min(lanes, len(expected)) :]
        touches = in_order(mine)
        assert len(touches) == len(expected), "each page once"
        assert set(touches) == expected
    assert not blocks


@pytest.mark.parametrize("n", [1, 7, 8, 9, 40, 67, 100])
@pytest.mark.parametrize("page", [64, 256, 4096])
def test_each_band_uses_what_the_kernel_does(n: int, page: int) -> None:
    trace = program("stencil", Geometry(page, 4 * page), bytes=8 * n * n, iterations=2)
    lanes = min(8, -(-n // 32))
    even, odd = read(trace)
    check_bands(even, brute_force(trace, n, "even", "odd"), lanes)
    check_bands(odd, brute_force(trace, n, "odd", "even"), lanes)


def test_pages_come_from_left_to_right() -> None:
    n = 300
    trace = program("stencil", Geometry(256, 1024), bytes=8 * n * n, iterations=1, lanes=3)
    (launch,) = read(trace)
    blocks = launch.blocks()
    for band, uses in enumerate(brute_force(trace, n, "even", "odd")):
        steps = np.array(uses.steps(in_order(blocks[3 * band : 3 * band + 3])))
        # A page first met as a tile's right halo column counts with the next tile, where most of it
        # is used.
        assert (np.diff(steps) >= -1).all()


def test_iterations_swap_the_matrices() -> None:
    trace = program("stencil", bytes="64MiB", iterations=3)
    for i, launch in enumerate(read(trace)):
        source, target = ("even", "odd") if i % 2 == 0 else ("odd", "even")
        assert set(launch.page[launch.write == 0].tolist()) == pages_of(trace, source)
        assert set(launch.page[launch.write == 1].tolist()) == pages_of(trace, target)


def test_intensity_and_width() -> None:
    trace = program("stencil", bytes=8 * 1000**2, iterations=1)
    (launch,) = read(trace)
    assert launch.width == 32 // 8  # 32 thread blocks in a band, 8 lanes
    assert launch.intensity == pytest.approx(5 * 1000**2 / launch.bytes.sum())
