from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidegate.errors import TidegateError
from tidegate.trace.build import SEGMENT_TOUCHES
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Provenance, Trace
from workloads.read_traces import Uses, in_order, pages_of, program, read

T = 32


def brute_force(trace: Trace, n: int, wave: int) -> list[Uses]:
    """Return what each wave uses, from the kernel's index functions, thread by thread."""
    tiles = -(-n // T)
    grid = [(bx, by) for by in range(tiles) for bx in range(tiles)]
    found = []
    for first in range(0, len(grid), wave):
        uses = Uses(trace)
        for bx, by in grid[first : first + wave]:
            for ty in range(T):
                for tx in range(T):
                    row, column = T * by + ty, T * bx + tx
                    for step in range(tiles):
                        if row < n and T * step + tx < n:
                            uses.element("A", row * n + T * step + tx, step, reference=0)
                        if T * step + ty < n and column < n:
                            uses.element("B", (T * step + ty) * n + column, step, reference=1)
                    if row < n and column < n:
                        uses.element("C", row * n + column, tiles, reference=2, write=1)
        found.append(uses)
    return found


def check_waves(n: int, wave: int, lanes: int, page: int) -> None:
    trace = program("matmul", Geometry(page, 4 * page), bytes=12 * n * n, wave=wave, lanes=lanes)
    (launch,) = read(trace)
    blocks = launch.blocks()
    for uses in brute_force(trace, n, wave):
        expected = uses.touches()
        used = min(lanes, wave, (-(-n // T)) ** 2, len(expected))
        mine, blocks = blocks[:used], blocks[used:]
        assert max(map(len, mine)) - min(map(len, mine)) <= 1, "distributed evenly"
        touches = in_order(mine)
        assert len(touches) == len(expected), "each page once"
        assert set(touches) == expected
        assert uses.steps(touches) == sorted(uses.steps(touches)), "in order of first use"
    assert not blocks


@pytest.mark.slow
@pytest.mark.parametrize("page", [64, 256, 4096, 65536])
@pytest.mark.parametrize("wave", [1, 4, 7, 656])
@pytest.mark.parametrize("n", [64, 100])
def test_each_wave_uses_what_the_kernel_does(n: int, wave: int, page: int) -> None:
    check_waves(n, wave, 16, page)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 170),
    wave=st.integers(1, 40),
    lanes=st.integers(1, 20),
    page=st.integers(4, 13).map((1).__lshift__),
)
# waves that end one row of tiles and begin the next, with a gap between
@example(n=160, wave=3, lanes=2, page=128)
@example(n=161, wave=2, lanes=16, page=64)
def test_any_size_wave_and_page(n: int, wave: int, lanes: int, page: int) -> None:
    check_waves(n, wave, lanes, page)


def test_all_pages_are_used_and_only_c_is_written() -> None:
    trace = program("matmul", bytes="64MiB")
    (launch,) = read(trace)
    for reference, name in enumerate("ABC"):
        mine = launch.reference == reference
        assert set(launch.page[mine].tolist()) == pages_of(trace, name)
        assert (launch.write[mine] == (name == "C")).all()
    assert trace.provenance is Provenance.DERIVED


@pytest.mark.parametrize("wave", [1, 10, 656])
def test_intensity_is_all_flops_over_all_bytes_at_the_efficiency(wave: int) -> None:
    n = 700
    (launch,) = read(program("matmul", bytes=12 * n * n, wave=wave, efficiency="20%"))
    assert launch.intensity == pytest.approx(2 * n**3 / launch.bytes.sum(dtype=np.int64) / 0.2)


def test_width_is_the_thread_blocks_of_a_lane() -> None:
    assert read(program("matmul", bytes="64MiB"))[0].width == 656 // 16
    # 4 × 4 tiles are all there are
    assert read(program("matmul", bytes=12 * 128 * 128))[0].width == 16 // 16
    assert read(program("matmul", bytes=12 * 128 * 128, wave=4, lanes=16))[0].width == 1


def test_large_matrices_stream_in_segments_of_whole_waves() -> None:
    trace = program("matmul", bytes="4GiB")
    (launch,) = trace.launches()
    segments = [(s.touches, s.blocks) for s in launch.segments]
    assert len(segments) > 1
    most = sum(o.pages for o in trace.objects)
    assert all(SEGMENT_TOUCHES <= touches < SEGMENT_TOUCHES + most for touches, _ in segments[:-1])
    assert all(blocks % 16 == 0 for _, blocks in segments)


def test_refuses_nonsense() -> None:
    for wrong in ({"wave": 0}, {"lanes": 0}, {"efficiency": 0}, {"efficiency": 2}):
        with pytest.raises(TidegateError, match="must be at"):
            program("matmul", **wrong)
