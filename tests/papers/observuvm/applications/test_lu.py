from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Trace
from workloads.read_traces import Uses, program, read
from workloads.wave_checks import check_waves, tiles, within

Wave = list[Uses]


class Steps:
    """The algorithm, step by step, over A column-major, and what each wave of each kernel uses."""

    def __init__(self, trace: Trace, n: int, nb: int, tile: int, wave: int):
        self.trace, self.n, self.nb, self.tile, self.wave = trace, n, nb, tile, wave

    def kernels(self, pivot: bool) -> Iterator[tuple[str, int, list[Wave]]]:
        """Yield name, thread blocks and waves of each launch."""
        for p in range(0, self.n, self.nb):
            q = min(self.n, p + self.nb)
            yield "getf2", q - p, self.in_place(range(p, q), p, 0)
            if pivot and p:
                yield "laswp", p, self.in_place(range(p), p, 0)
            if q < self.n:
                if pivot:
                    yield "laswp", self.n - q, self.in_place(range(q, self.n), p, 2)
                across = len(tiles(self.n - q, self.tile))
                yield "trsm", across, self.trsm(p, q)
                yield "gemm", across**2, self.gemm(p, q)

    def in_place(self, columns: range, row: int, reference: int) -> list[Wave]:
        """Return columns from a row on, each a thread block: read, then written."""
        waves = []
        for first in range(0, len(columns), self.wave):
            parts = [Uses(self.trace), Uses(self.trace)]
            for j in columns[first : first + self.wave]:
                for i in range(row, self.n):
                    for write, part in enumerate(parts):
                        part.element("A", j * self.n + i, 0, reference, write)
            waves.append(parts)
        return waves

    def trsm(self, p: int, q: int) -> list[Wave]:
        waves = []
        across = len(tiles(self.n - q, self.tile))
        for first in range(0, across, self.wave):
            uses = Uses(self.trace)
            for k in range(p, q):
                for i in range(p, q):
                    uses.element("A", k * self.n + i, (k - p) // 8, reference=0)
            for block in range(first, min(across, first + self.wave)):
                for j in within(q + self.tile * block, self.tile, self.n):
                    for i in range(p, q):
                        uses.element("A", j * self.n + i, (i - p) // 8, reference=1)
                        uses.element("A", j * self.n + i, self.n, reference=1, write=1)
            waves.append([uses])
        return waves

    def gemm(self, p: int, q: int) -> list[Wave]:
        across = len(tiles(self.n - q, self.tile))
        blocks = [(bx, by) for by in range(across) for bx in range(across)]
        waves = []
        for first in range(0, len(blocks), self.wave):
            uses = Uses(self.trace)
            for bx, by in blocks[first : first + self.wave]:
                rows, columns = (within(q + self.tile * b, self.tile, self.n) for b in (bx, by))
                for k in range(p, q):
                    for i in rows:
                        uses.element("A", k * self.n + i, (k - p) // 8, reference=0)
                    for j in columns:
                        uses.element("A", j * self.n + k, (k - p) // 8, reference=1)
                for j in columns:
                    for i in rows:
                        uses.element("A", j * self.n + i, self.n, reference=2)
                        uses.element("A", j * self.n + i, self.n + 1, reference=2, write=1)
            waves.append([uses])
        return waves


def check(n: int, nb: int, tile: int, wave: int, lanes: int, page: int, pivot: bool) -> None:
    options = {"nb": nb, "tile": tile, "wave": wave, "lanes": lanes, "pivot": pivot}
    trace = program("LU", Geometry(page, 4 * page), bytes=4 * n * n, **options)
    expected = Steps(trace, n, nb, tile, wave).kernels(pivot)
    for launch, (name, blocks, waves) in zip(read(trace), expected, strict=True):
        assert launch.name == name
        check_waves(launch, waves, min(lanes, wave, blocks))


@pytest.mark.slow
@pytest.mark.parametrize("pivot", [False, True])
@pytest.mark.parametrize("page", [64, 1024, 65536])
@pytest.mark.parametrize("wave", [1, 4, 656])
def test_each_wave_uses_what_the_algorithm_does(wave: int, page: int, pivot: bool) -> None:
    check(n=70, nb=20, tile=16, wave=wave, lanes=4, page=page, pivot=pivot)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    n=st.integers(1, 60),
    nb=st.integers(7, 40),
    tile=st.integers(3, 33),
    wave=st.integers(1, 20),
    lanes=st.integers(1, 20),
    page=st.integers(4, 12).map((1).__lshift__),
    pivot=st.booleans(),
)
def test_any_size_panel_and_page(
    n: int, nb: int, tile: int, wave: int, lanes: int, page: int, pivot: bool
) -> None:
    check(n, nb, tile, wave, lanes, page, pivot)


def test_a_panel_is_walked_column_by_column() -> None:
    launch = read(program("LU", Geometry(256, 1024), bytes=4 * 100 * 100, nb=30, lanes=1))[0]
    read_first, written = np.split(launch.page, 2)
    assert (np.diff(read_first) == 1).all()
    np.testing.assert_array_equal(read_first, written)


def test_touches_in_closed_form() -> None:
    """A column of the matrix is a page, a wave a column of tiles."""
    n, nb, tile = 1024, 256, 128
    launches = read(
        program("LU", Geometry(4 * n, 4 * n), bytes=4 * n * n, nb=nb, tile=tile, wave=n // tile)
    )
    for launch in launches:
        if launch.name == "getf2":
            assert len(launch.page) == 2 * nb
    for step, launch in enumerate(x for x in launches if x.name == "trsm"):
        assert len(launch.page) == nb + 2 * (n - (step + 1) * nb), (
            "the diagonal block; the other columns, loaded and stored"
        )
    (last,) = [x for x in launches if x.name == "gemm"][2:]
    assert len(last.page) == nb + nb + 2 * nb, (
        "two by two tiles, one wave, 256 columns each: the panel, rows of U, the rest twice"
    )


def test_what_is_left_shrinks_to_nothing() -> None:
    launches = read(program("LU", bytes="200MB", nb=1024))
    gemm = [len(np.unique(x.page[x.reference == 2])) for x in launches if x.name == "gemm"]
    assert gemm == sorted(gemm, reverse=True)
    assert [x.name for x in launches][-1] == "getf2"


def test_flops_are_two_thirds_of_n_cubed() -> None:
    n = 2000
    launches = read(program("LU", bytes=4 * n * n, nb=100, efficiency=1))
    flops = sum(x.intensity * x.bytes.sum(dtype=np.int64) for x in launches)
    assert flops == pytest.approx(2 / 3 * n**3, rel=0.01)
