from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidegate.errors import TidegateError
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Trace
from workloads.read_traces import Uses, pages_of, program, read
from workloads.wave_checks import Blocks, check_waves, in_waves, tiles


def brute_force(trace: Trace, n: int, source: str, target: str, blocks: Blocks) -> list[Uses]:
    """Return what these thread blocks read and then write, from the index functions."""
    reads, writes = Uses(trace), Uses(trace)
    for bx, by in blocks:
        for i in range(8 * by, 8 * by + 8):
            for j in range(32 * bx, 32 * bx + 32):
                if 0 < i < n - 1 and 0 < j < n - 1:
                    for p in (-1, 0, 1):
                        for q in (-1, 0, 1):
                            reads.element(source, (i + p) * n + j + q, 0, reference=0)
                    writes.element(target, i * n + j, 0, reference=1, write=1)
    return [reads, writes]


def check(n: int, wave: int, lanes: int, page: int, swap: bool) -> None:
    options = {"wave": wave, "lanes": lanes, "swap": swap, "iterations": 2}
    trace = program("2DC", Geometry(page, 4 * page), bytes=8 * n * n, **options)
    blocks = [(bx, by) for by in tiles(n, 8) for bx in tiles(n, 32)]
    for iteration, launch in enumerate(read(trace)):
        names = "BA" if swap and iteration else "AB"
        waves = [
            brute_force(trace, n, *names, part) for part in in_waves(blocks, min(wave, len(blocks)))
        ]
        busy = [parts for parts in waves if parts[0].touches()]  # a wave may lie in the edge alone
        check_waves(launch, busy, min(lanes, wave, len(blocks)))


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 8, 33, 34, 65, 100])
@pytest.mark.parametrize("page", [64, 256, 4096])
@pytest.mark.parametrize("wave", [1, 3, 656])
def test_each_wave_uses_what_the_kernel_does(n: int, page: int, wave: int) -> None:
    check(n, wave, 4, page, swap=False)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(3, 200),
    wave=st.integers(1, 20),
    lanes=st.integers(1, 20),
    page=st.integers(4, 12).map((1).__lshift__),
    swap=st.booleans(),
)
@example(n=161, wave=5, lanes=3, page=64, swap=False)  # waves that end one band and begin the next
def test_any_size_wave_and_page(n: int, wave: int, lanes: int, page: int, swap: bool) -> None:
    check(n, wave, lanes, page, swap)


def test_calls_are_alike_unless_the_matrices_change_places() -> None:
    trace = program("2DC", bytes="64MiB", iterations=3)
    for launch in read(trace):
        assert set(launch.page[launch.write == 0].tolist()) == pages_of(trace, "A")
        assert set(launch.page[launch.write == 1].tolist()) == pages_of(trace, "B")
    trace = program("2DC", bytes="64MiB", iterations=3, swap=True)
    for i, launch in enumerate(read(trace)):
        assert set(launch.page[launch.write == 1].tolist()) == pages_of(trace, "AB"[i % 2 == 0])


def test_intensity_and_width() -> None:
    launch = read(program("2DC", bytes=8 * 1000**2, iterations=1))[0]
    assert launch.intensity == pytest.approx(17 * 998**2 / launch.bytes.sum(dtype=np.int64))
    assert launch.width == 656 // 16
    written = launch.bytes[launch.write == 1].sum(dtype=np.int64)
    assert written == 4 * 998**2, "each float inside, once"


def test_a_matrix_without_an_inside_is_refused() -> None:
    with pytest.raises(TidegateError, match="give it more bytes"):
        program("2DC", bytes=8 * 2 * 2)
