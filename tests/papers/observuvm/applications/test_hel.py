from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Trace
from workloads.read_traces import Uses, program, read
from workloads.wave_checks import Blocks, check_waves, in_waves, tiles, within

UNITS = {"1:2:4": (1, 2, 4), "square": (1, 1, 1)}


def brute_force(trace: Trace, sides: tuple[int, int, int], tile: int, blocks: Blocks) -> Uses:
    """Return what these tiles use, from the kernel's index functions."""
    m, n, p = sides
    uses = Uses(trace)
    for bx, by in blocks:
        rows, columns = within(tile * by, tile, m), within(tile * bx, tile, p)
        for i in range(n):
            for row in rows:
                uses.element("A", row * n + i, i, reference=0)
            for col in columns:
                uses.element("B", i * p + col, i, reference=1)
        for row in rows:
            for col in columns:
                uses.element("C", row * p + col, n, reference=2, write=1)
    return uses


def check(shape: str, unit: int, tile: int, wave: int, lanes: int, page: int) -> None:
    m, n, p = (side * unit for side in UNITS[shape])
    options = {"shape": shape, "tile": tile, "wave": wave, "lanes": lanes}
    trace = program("HEL", Geometry(page, 4 * page), bytes=4 * (m * n + n * p + m * p), **options)
    (launch,) = read(trace)
    blocks = [(bx, by) for by in tiles(m, tile) for bx in tiles(p, tile)]
    waves = (
        [brute_force(trace, (m, n, p), tile, part)]
        for part in in_waves(blocks, min(wave, len(blocks)))
    )
    check_waves(launch, waves, min(lanes, wave, len(blocks)))


@pytest.mark.parametrize("shape", UNITS)
@pytest.mark.parametrize("tile", [16, 32])
@pytest.mark.parametrize("page", [64, 4096])
def test_each_wave_uses_what_the_kernel_does(shape: str, tile: int, page: int) -> None:
    check(shape, 40, tile, wave=7, lanes=4, page=page)


@settings(max_examples=20, deadline=None)
@given(
    shape=st.sampled_from(list(UNITS)),
    unit=st.integers(1, 40),
    tile=st.integers(3, 33),
    wave=st.integers(1, 20),
    lanes=st.integers(1, 20),
    page=st.integers(4, 12).map((1).__lshift__),
)
def test_any_size_tile_wave_and_page(
    shape: str, unit: int, tile: int, wave: int, lanes: int, page: int
) -> None:
    check(shape, unit, tile, wave, lanes, page)


def test_shapes() -> None:
    one, two = program("HEL", bytes=10**9), program("HEL", bytes=10**9, shape="square")
    sizes = [[o.bytes for o in trace.objects] for trace in (one, two)]
    assert sizes[0][1] == 4 * sizes[0][0] == 2 * sizes[0][2]
    assert len(set(sizes[1])) == 1


def test_intensity_is_all_flops_over_all_bytes_at_the_efficiency() -> None:
    (launch,) = read(program("HEL", bytes=56 * 150**2, efficiency="20%", wave=10))
    assert launch.intensity == pytest.approx(
        3 * 8 * 150**3 / launch.bytes.sum(dtype=np.int64) / 0.2
    )
    assert launch.width == 1
    assert read(program("HEL", bytes="100MB"))[0].width == 656 // 16
