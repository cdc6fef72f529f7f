from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Provenance, Trace
from workloads.read_traces import Uses, pages_of, program, read
from workloads.wave_checks import Blocks, check_waves, in_waves, tiles, within


def grid_order(n: int, tile: int, swizzle: int) -> Blocks:
    """Return tiles (bx, by) in the order of CUTLASS's GemmIdentityThreadblockSwizzle."""
    count = len(tiles(n, tile))
    blocks = [
        (x // swizzle, y * swizzle + x % swizzle)
        for y in tiles(count, swizzle)
        for x in range(count * swizzle)
    ]
    return [(bx, by) for bx, by in blocks if by < count]


def brute_force(trace: Trace, n: int, tile: int, blocks: Blocks) -> Uses:
    """Return what these thread blocks use, from the kernel's index functions."""
    uses = Uses(trace)
    for bx, by in blocks:
        rows, columns = within(tile * bx, tile, n), within(tile * by, tile, n)
        for k in range(n):
            for i in rows:
                uses.element("A", k * n + i, k // 8, reference=0)
            for j in columns:
                uses.element("B", j * n + k, k // 8, reference=1)
        for j in columns:
            for i in rows:
                uses.element("C", j * n + i, n, reference=2, write=1)
    return uses


def check(n: int, tile: int, swizzle: int, wave: int, lanes: int, page: int) -> None:
    options = {"tile": tile, "swizzle": swizzle, "wave": wave, "lanes": lanes}
    trace = program("GMM", Geometry(page, 4 * page), bytes=12 * n * n, **options)
    (launch,) = read(trace)
    blocks = grid_order(n, tile, swizzle)
    waves = (
        [brute_force(trace, n, tile, part)] for part in in_waves(blocks, min(wave, len(blocks)))
    )
    check_waves(launch, waves, min(lanes, wave, len(blocks)))


@pytest.mark.slow
@pytest.mark.parametrize("page", [64, 1024, 65536])
@pytest.mark.parametrize("swizzle", [1, 3])
@pytest.mark.parametrize("wave", [1, 5, 164])
def test_each_wave_uses_what_the_kernel_does(wave: int, swizzle: int, page: int) -> None:
    check(n=70, tile=16, swizzle=swizzle, wave=wave, lanes=4, page=page)


@settings(max_examples=20, deadline=None)
@given(
    n=st.integers(1, 60),
    tile=st.integers(3, 33),
    swizzle=st.integers(1, 5),
    wave=st.integers(1, 20),
    lanes=st.integers(1, 20),
    page=st.integers(4, 12).map((1).__lshift__),
)
def test_any_size_tile_order_and_page(
    n: int, tile: int, swizzle: int, wave: int, lanes: int, page: int
) -> None:
    check(n, tile, swizzle, wave, lanes, page)


def test_touches_in_closed_form() -> None:
    """A column of each matrix is a page, a wave a column of tiles: all of A, and a panel of B and
    of C.
    """
    n, tile = 1024, 128
    (launch,) = read(program("GMM", Geometry(4 * n, 4 * n), bytes=12 * n * n, wave=n // tile))
    assert len(launch.page) == n // tile * (n + 2 * tile)
    assert launch.bytes.sum(dtype=np.int64) == len(launch.page) * 4 * n


def test_intensity_is_all_flops_over_all_bytes_at_the_efficiency() -> None:
    n = 700
    for swizzle in (1, 8):
        (launch,) = read(
            program("GMM", bytes=12 * n * n, swizzle=swizzle, wave=10, efficiency="80%")
        )
        assert launch.intensity == pytest.approx(2 * n**3 / launch.bytes.sum(dtype=np.int64) / 0.8)


def test_all_pages_are_used_only_c_is_written_and_a_wave_fills_the_gpu() -> None:
    trace = program("GMM", bytes="200MiB")
    (launch,) = read(trace)
    for reference, name in enumerate("ABC"):
        mine = launch.reference == reference
        assert set(launch.page[mine].tolist()) == pages_of(trace, name)
        assert (launch.write[mine] == (name == "C")).all()
    assert launch.width == 656 // 16
    assert trace.provenance is Provenance.DERIVED
