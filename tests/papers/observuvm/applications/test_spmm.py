from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidegate.errors import TidegateError
from tidegate.trace.build import SEGMENT_TOUCHES
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Provenance, Trace
from tidegate.workloads import workloads
from tidegate.workloads.suites import GB
from workloads.read_traces import Uses, in_order, pages_of, program, read


def waves_of(m: int, n: int, tile: int, wave: int, fastest: str) -> Iterator[list[tuple[int, int]]]:
    """Return the thread blocks (x, y) of each wave: whole lines of the grid, or parts of one."""
    groups, tiles = -(-m // 8), -(-n // tile)
    fast, slow = (groups, tiles) if fastest == "rows" else (tiles, groups)
    lines, parts = max(1, wave // fast), -(-fast // wave)
    for line in range(0, slow, lines):
        for part in range(parts):
            blocks = [
                (f, s)
                for s in range(line, min(slow, line + lines))
                for f in range(part * fast // parts, (part + 1) * fast // parts)
            ]
            yield blocks if fastest == "rows" else [(s, f) for f, s in blocks]


def brute_force(
    trace: Trace, blocks: list[tuple[int, int]], a: Any, m: int, n: int, tile: int
) -> Uses:
    """Return what thread blocks use, from the index functions: warp by warp, lane by lane."""
    uses = Uses(trace)
    offsets, columns = a.offsets.tolist(), a.columns.tolist()
    last = 2 + 2 * max(-(-(b - a) // 32) for a, b in pairwise(offsets))
    for x, y in blocks:
        for row in range(8 * x, min(m, 8 * x + 8)):
            uses.element("offsets", row, 0, reference=0)
            uses.element("offsets", row + 1, 0, reference=0)
            for j in range(offsets[row], offsets[row + 1]):
                chunk = (j - offsets[row]) // 32
                uses.element("columns", j, 1 + 2 * chunk, reference=1)
                uses.element("values", j, 1 + 2 * chunk, reference=2)
                for col in range(y * tile, min(n, (y + 1) * tile)):
                    uses.element("B", columns[j] + col * m, 2 + 2 * chunk, reference=3)
            for col in range(y * tile, min(n, (y + 1) * tile)):
                uses.element("C", row + col * m, last, reference=4, write=1)
    return uses


def check_waves(
    page: int,
    lanes: int = 16,
    wave: int = 656,
    tile: int = 32,
    fastest: str = "rows",
    **options: Any,
) -> None:
    options |= {"lanes": lanes, "wave": wave, "tile": tile, "fastest": fastest}
    work = workloads.find("SPM")(**options)
    trace = work.trace(Geometry(page, 4 * page))
    m, n, a = work.m, work._columns(work.m), work.sparse()
    wave = min(wave, -(-m // 8) * -(-n // tile))
    (launch,) = read(trace)
    assert launch.width == wave // min(lanes, wave)
    blocks = launch.blocks()
    for thread_blocks in waves_of(m, n, tile, wave, fastest):
        uses = brute_force(trace, thread_blocks, a, m, n, tile)
        expected = uses.touches()
        lanes_used = min(lanes, wave, len(expected))
        mine, blocks = blocks[:lanes_used], blocks[lanes_used:]
        touches = in_order(mine)
        assert len(touches) == len(expected), "each page once"
        assert set(touches) == expected
        assert uses.steps(touches) == sorted(uses.steps(touches)), "in order of first use"
    assert not blocks
    total = launch.bytes.sum(dtype=np.int64)
    assert launch.intensity == pytest.approx(2 * len(a.columns) * n / total / 0.02)


@pytest.mark.slow
@pytest.mark.parametrize("fastest", ["rows", "columns"])
@pytest.mark.parametrize("page", [64, 1024, 65536])
@pytest.mark.parametrize("wave", [1, 5, 656])
def test_each_wave_uses_what_the_kernel_does(wave: int, page: int, fastest: str) -> None:
    check_waves(page, wave=wave, fastest=fastest, bytes=80_000, density="2%")


@pytest.mark.parametrize("density", ["100%", "60%"])
def test_long_rows_take_several_steps(density: str) -> None:
    check_waves(32, wave=2, bytes=100_000, density=density, aspect=0.05)


@settings(max_examples=30, deadline=None)
@given(
    size=st.integers(500, 40_000),
    density=st.floats(0.001, 1),
    aspect=st.floats(0.05, 3),
    skew=st.floats(0, 1.5),
    page=st.integers(5, 13).map((1).__lshift__),
    wave=st.integers(1, 30),
    lanes=st.integers(1, 20),
    tile=st.integers(1, 40),
    fastest=st.sampled_from(["rows", "columns"]),
)
# rows of several steps that begin and end amid pages
@example(20_000, 0.9, 0.1, 0, 64, 3, 4, 5, "rows")
def test_any_shape_wave_and_page(
    size: int,
    density: float,
    aspect: float,
    skew: float,
    page: int,
    wave: int,
    lanes: int,
    tile: int,
    fastest: str,
) -> None:
    check_waves(
        page, lanes, wave, tile, fastest, bytes=size, density=density, aspect=aspect, skew=skew
    )


@settings(max_examples=50, deadline=None)
@given(
    size=st.integers(100, 300_000),
    density=st.floats(0.001, 1),
    skew=st.floats(0, 2),
    seed=st.integers(0, 3),
)
def test_rows_have_distinct_rising_columns(
    size: int, density: float, skew: float, seed: int
) -> None:
    work = workloads.find("SPM")(bytes=size, density=density, skew=skew, seed=seed)
    offsets, columns = work.sparse()
    assert 4 * len(columns) == work.sizes()["columns"]
    assert offsets[0] == 0
    assert offsets[-1] == len(columns)
    assert len(offsets) == work.m + 1
    for a, b in pairwise(offsets):
        assert (np.diff(columns[a:b]) > 0).all()
    assert columns.min() >= 0
    assert columns.max() < work.m


def test_a_full_matrix_has_every_column() -> None:
    work = workloads.find("SPM")(bytes=100_000, density=1)
    offsets, columns = work.sparse()
    np.testing.assert_array_equal(columns, np.tile(np.arange(work.m), work.m))
    np.testing.assert_array_equal(np.diff(offsets), work.m)


def test_uniform_rows_and_columns_are_alike() -> None:
    work = workloads.find("SPM")(bytes="200MB", density="1%")
    offsets, columns = work.sparse()
    mean = len(columns) / work.m
    for times in (np.diff(offsets), np.bincount(columns, minlength=work.m)):
        assert times.var() == pytest.approx(mean, rel=0.1)  # as Poisson's


def test_a_large_dense_matrix_is_not_made_but_read_the_same(monkeypatch: Any) -> None:
    """The same pages with the same bytes of B and C; steps differ by chance only."""
    options = {"bytes": 40 << 20, "wave": 64, "lanes": 1}
    made = read(program("SPM", Geometry(4096, 65536), **options))[0]
    monkeypatch.setattr("tidegate.papers.observuvm.applications.spmm._MADE", 0)
    work = workloads.find("SPM")(**options)
    assert not len(work.sparse().columns)
    expected = read(work.trace(Geometry(4096, 65536)))[0]
    for one, other in zip(made.blocks(), expected.blocks(), strict=True):
        used = [{(p, b) for p, _, b, site in block if site >= 3} for block in (one, other)]
        assert used[0] == used[1]
        first = [[p for p, _, _, site in block if site == 3] for block in (one, other)]
        place = {page: i for i, page in enumerate(first[1])}
        moved = [abs(i - place[page]) for i, page in enumerate(first[0])]
        assert np.mean(moved) < 0.1 * len(moved)
    assert made.intensity == pytest.approx(expected.intensity, rel=0.01)


def test_skew_makes_long_rows_and_popular_columns() -> None:
    work = workloads.find("SPM")(bytes="200MB", skew=0.8, density="1%")
    offsets, columns = work.sparse()
    for times in (np.diff(offsets), np.bincount(columns, minlength=work.m)):
        assert np.sort(times)[-work.m // 100 :].sum() > 0.1 * len(columns)


def test_the_seed_decides() -> None:
    one, again, other = (
        workloads.find("SPM")(bytes="1MB", seed=s).sparse().columns for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


def test_a_comes_for_every_column_of_tiles_and_b_and_c_once() -> None:
    trace = program("SPM", bytes="200MB", tile=64, density="1%", aspect=1)
    (launch,) = read(trace)
    n = trace.workload.m  # type: ignore[attr-defined]
    for reference, name in enumerate(("offsets", "columns", "values", "B", "C")):
        mine = launch.reference == reference
        assert set(launch.page[mine].tolist()) == pages_of(trace, name)
        assert (launch.write[mine] == (name == "C")).all()
    first = trace.objects[1].first_page + 1  # a page within one wave
    assert np.count_nonzero(launch.page == first) == -(-n // 64)
    assert trace.provenance is Provenance.DERIVED


def test_iterations_are_launches() -> None:
    launches = read(program("SPM", bytes="10MB", iterations=3))
    assert len(launches) == 3
    np.testing.assert_array_equal(launches[0].page, launches[2].page)


@pytest.mark.slow
def test_large_products_stream_in_segments() -> None:
    trace = program("SPM", bytes="4GB", wave=164, density="1%", aspect=1)
    (launch,) = trace.launches()
    segments = [s.touches for s in launch.segments]
    assert len(segments) > 1
    assert all(SEGMENT_TOUCHES <= touches < 2 * SEGMENT_TOUCHES for touches in segments[:-1])


@pytest.mark.parametrize(
    "options", [{}, {"density": "5%"}, {"aspect": 0.01}, {"density": 1e-4, "aspect": 1e-3}]
)
def test_the_papers_size(options: dict[str, Any]) -> None:
    work = workloads.find("SPM")(**options)
    assert sum(work.sizes().values()) == pytest.approx(8 * GB, rel=0.01)
    assert sum(work.sizes().values()) <= 8 * GB


def test_the_sample_s_density_and_shape_are_the_default() -> None:
    work = workloads.find("SPM")()
    rows, columns = work.m, work.sizes()["B"] / 4 / work.m
    assert (work.density, columns / rows) == (9 / 16, pytest.approx(3 / 4, rel=0.01))


def test_refuses_nonsense() -> None:
    for wrong in (
        {"density": 0},
        {"density": 2},
        {"aspect": 0},
        {"skew": -1},
        {"tile": 0},
        {"wave": 0},
        {"iterations": 0},
    ):
        with pytest.raises(TidegateError, match="must be at"):
            program("SPM", **wrong)
    with pytest.raises(TidegateError, match="must be one of"):
        program("SPM", fastest="both")
