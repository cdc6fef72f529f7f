from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Trace
from tidegate.workloads import workloads
from workloads.read_traces import Uses, program, read
from workloads.wave_checks import Blocks, check_waves, in_waves, tiles, within


def grid_order(n: int, tile: int, uplo: str) -> Blocks:
    """Return tiles (bx, by), bx fastest; thread blocks beside the triangle return at once."""
    return [
        (bx, by)
        for by in tiles(n, tile)
        for bx in tiles(n, tile)
        if (bx >= by if uplo == "lower" else bx <= by)
    ]


def in_triangle(i: int, j: int, uplo: str) -> bool:
    return i >= j if uplo == "lower" else i <= j


def at(row: int, column: int, n: int, k: int, trans: str) -> int:
    """Return the place of the operand's float for ``row`` of C, ``column`` of the depth."""
    return column * n + row if trans == "N" else row * k + column


def brute_force(
    trace: Trace, n: int, k: int, tile: int, blocks: Blocks, uplo: str, trans: str, size: int
) -> Uses:
    """Return what these thread blocks use, from the kernel's index functions."""
    uses = Uses(trace, size)
    for bx, by in blocks:
        rows, columns = within(tile * bx, tile, n), within(tile * by, tile, n)
        for x in range(k):
            for row in (*rows, *columns):
                uses.element("A", at(row, x, n, k, trans), x // 8, reference=0)
        for j in columns:
            for i in rows:
                if in_triangle(i, j, uplo):
                    uses.element("C", j * n + i, k, reference=1, write=1)
    return uses


def check(
    n: int,
    ratio: float,
    tile: int,
    wave: int,
    lanes: int,
    page: int,
    uplo: str,
    trans: str,
    double: bool = False,
) -> None:
    size = 8 if double else 4
    options = {
        "double": double,
        "depth_ratio": ratio,
        "tile": tile,
        "wave": wave,
        "lanes": lanes,
        "uplo": uplo,
        "trans": trans,
    }
    workload = workloads.find("SRK")(bytes=size * n * (n * (1 + ratio) + 1), **options)
    n, k, trace = workload.n, workload.depth, workload.trace(Geometry(page, 4 * page))
    (launch,) = read(trace)
    blocks = grid_order(n, tile, uplo)
    waves = (
        [brute_force(trace, n, k, tile, part, uplo, trans, size)]
        for part in in_waves(blocks, min(wave, len(blocks)))
    )
    check_waves(launch, waves, min(lanes, wave, len(blocks)))


@pytest.mark.slow
@pytest.mark.parametrize("uplo", ["lower", "upper"])
@pytest.mark.parametrize("trans", ["N", "T"])
@pytest.mark.parametrize("wave", [1, 6, 164])
def test_each_wave_uses_what_the_kernel_does(wave: int, trans: str, uplo: str) -> None:
    check(100, 1.0, 16, wave, 4, 256, uplo, trans)


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 60),
    ratio=st.sampled_from([0.1, 0.5, 1.0, 2.0]),
    tile=st.integers(3, 33),
    wave=st.integers(1, 20),
    lanes=st.integers(1, 20),
    page=st.integers(4, 12).map((1).__lshift__),
    uplo=st.sampled_from(["lower", "upper"]),
    trans=st.sampled_from(["N", "T"]),
)
def test_any_size_shape_and_page(
    n: int, ratio: float, tile: int, wave: int, lanes: int, page: int, uplo: str, trans: str
) -> None:
    check(n, ratio, tile, wave, lanes, page, uplo, trans)


def test_doubles_take_twice_the_bytes_and_64_times_the_time() -> None:
    check(60, 0.5, 16, 6, 4, 512, "upper", "T", double=True)
    n = 700
    for double, slower in ((False, 1), (True, 64)):
        size = (8 if double else 4) * 2 * n * n
        (launch,) = read(program("SRK", bytes=size, wave=10, double=double, efficiency=1))
        used = launch.bytes.sum(dtype=np.int64)
        assert launch.intensity == pytest.approx(slower * n * (n + 1) * n / used)


def test_nvidias_sample_is_the_default() -> None:
    work = workloads.find("SRK")()
    assert (work.uplo, work.trans, workloads.find("SR2")().uplo) == ("upper", "T", "upper")
    assert round(work.n / 1024) == 35


def test_touches_in_closed_form() -> None:
    """A column of each matrix is a page: a thread block alone uses all k columns of A and as many
    of C as it has.
    """
    n, tile = 1024, 128
    (launch,) = read(program("SRK", Geometry(4 * n, 4 * n), bytes=8 * n * n, wave=1, trans="N"))
    blocks = n // tile * (n // tile + 1) // 2
    assert len(launch.page) == blocks * (n + tile)
    written = launch.bytes[launch.write == 1].sum(dtype=np.int64)
    assert written == 4 * n * (n + 1) // 2, "the triangle, once"


@pytest.mark.parametrize("uplo", ["lower", "upper"])
@pytest.mark.parametrize("trans", ["N", "T"])
def test_intensity_is_all_flops_over_all_bytes_at_the_efficiency(uplo: str, trans: str) -> None:
    n = 700
    (launch,) = read(
        program("SRK", bytes=8 * n * n, wave=10, uplo=uplo, trans=trans, efficiency="80%")
    )
    assert launch.intensity == pytest.approx(
        n * (n + 1) * n / launch.bytes.sum(dtype=np.int64) / 0.8
    )


def test_rows_further_down_are_used_more_often_in_the_lower_triangle() -> None:
    n, tile = 2048, 128
    options = {"bytes": 8 * n * n, "trans": "N", "uplo": "lower"}
    (launch,) = read(program("SRK", Geometry(4 * tile, 4 * n), **options, wave=1))
    mine = launch.page[launch.reference == 0] % (n // tile)  # which rows of A, 128 to a page
    counts = np.bincount(mine) // n
    assert counts.tolist() == [n // tile] * (n // tile), (
        "one block at a time: each row as column or row of tiles"
    )
    (launch,) = read(program("SRK", Geometry(4 * tile, 4 * n), **options, wave=16))
    counts = np.bincount(launch.page[launch.reference == 0] % (n // tile)) // n
    assert counts[0] == 1
    assert counts[-1] == counts.max() > 5
