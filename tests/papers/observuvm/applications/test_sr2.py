from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papers.observuvm.applications.test_srk import at, grid_order, in_triangle
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Trace
from tidegate.workloads import workloads
from workloads.read_traces import Uses, program, read
from workloads.wave_checks import Blocks, check_waves, in_waves, within


def brute_force(
    trace: Trace, n: int, k: int, tile: int, blocks: Blocks, uplo: str, trans: str, size: int
) -> list[Uses]:
    """Return what these thread blocks use: A and B, A and B exchanged, and C."""
    parts = [Uses(trace, size) for _ in range(3)]
    for bx, by in blocks:
        rows, columns = within(tile * bx, tile, n), within(tile * by, tile, n)
        for turn, (left, right) in enumerate(("AB", "BA")):
            for x in range(k):
                for i in rows:
                    parts[turn].element(
                        left, at(i, x, n, k, trans), x // 8, reference="AB".index(left)
                    )
                for j in columns:
                    parts[turn].element(
                        right, at(j, x, n, k, trans), x // 8, reference="AB".index(right)
                    )
        for j in columns:
            for i in rows:
                if in_triangle(i, j, uplo):
                    parts[2].element("C", j * n + i, 0, reference=2, write=1)
    return parts


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
    workload = workloads.find("SR2")(bytes=size * n * (n * (1 + 2 * ratio) + 2), **options)
    n, k, trace = workload.n, workload.depth, workload.trace(Geometry(page, 4 * page))
    (launch,) = read(trace)
    blocks = grid_order(n, tile, uplo)
    waves = (
        brute_force(trace, n, k, tile, part, uplo, trans, size)
        for part in in_waves(blocks, min(wave, len(blocks)))
    )
    check_waves(launch, waves, min(lanes, wave, len(blocks)))


@pytest.mark.parametrize("uplo", ["lower", "upper"])
@pytest.mark.parametrize("trans", ["N", "T"])
@pytest.mark.parametrize("wave", [1, 6, 164])
def test_each_wave_uses_what_the_kernel_does(wave: int, trans: str, uplo: str) -> None:
    check(80, 1.0, 16, wave, 4, 256, uplo, trans)


@settings(max_examples=20, deadline=None)
@given(
    n=st.integers(1, 50),
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


def test_touches_in_closed_form() -> None:
    """A column of each matrix is a page: a thread block alone uses all k columns of A and of B
    twice, and its of C.
    """
    n, tile = 1024, 128
    (launch,) = read(
        program("SR2", Geometry(4 * n, 4 * n), bytes=12 * n * n, depth_ratio=1, wave=1)
    )
    assert len(launch.page) == n // tile * (n // tile + 1) // 2 * (4 * n + tile)


@pytest.mark.parametrize("trans", ["N", "T"])
def test_intensity_is_all_flops_over_all_bytes_at_the_efficiency(trans: str) -> None:
    n = 600
    (launch,) = read(
        program("SR2", bytes=12 * n * n, depth_ratio=1, wave=10, trans=trans, efficiency="80%")
    )
    assert launch.intensity == pytest.approx(
        2 * n * (n + 1) * n / launch.bytes.sum(dtype=np.int64) / 0.8
    )


def test_the_papers_size_is_round() -> None:
    for ratio, n, k in ((24 / 28, 28, 24), (4 / 3, 24, 32)):
        work = workloads.find("SR2")(depth_ratio=ratio)
        assert (round(work.n / 1024), round(work.depth / 1024)) == (n, k)
