from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Trace
from workloads.read_traces import Uses, program, read
from workloads.wave_checks import check_waves, in_waves, tiles, within


def brute_force(trace: Trace, n: int, tile: int, blocks: list[tuple[int, int]]) -> Uses:
    """Return what these thread blocks use, from the kernel's index functions."""
    uses = Uses(trace)
    for block, _ in blocks:
        for i in within(tile * block, tile, n):
            for j in range(n):
                uses.element("A", j * n + i, j, reference=0)
                uses.element("x", j, j, reference=1)
            uses.element("y", i, n, reference=2, write=1)
    return uses


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 90),
    tile=st.integers(1, 33),
    wave=st.integers(1, 20),
    lanes=st.integers(1, 20),
    page=st.integers(4, 12).map((1).__lshift__),
)
def test_each_call_uses_what_the_kernel_does(
    n: int, tile: int, wave: int, lanes: int, page: int
) -> None:
    options = {"tile": tile, "wave": wave, "lanes": lanes, "iterations": 2}
    trace = program("GMV", Geometry(page, 4 * page), bytes=4 * (n * n + 2 * n), **options)
    blocks = [(block, 0) for block in tiles(n, tile)]
    launches = read(trace)
    assert len(launches) == 2
    for launch in launches:
        waves = (
            [brute_force(trace, n, tile, part)] for part in in_waves(blocks, min(wave, len(blocks)))
        )
        check_waves(launch, waves, min(lanes, wave, len(blocks)))


def test_a_call_reads_the_matrix_once_in_order_of_address() -> None:
    trace = program("GMV", bytes="300MiB", iterations=3, lanes=1)
    for launch in read(trace):
        assert len(launch.page) == sum(o.pages for o in trace.objects)
        np.testing.assert_array_equal(
            launch.page[launch.reference == 0], np.arange(trace.objects[0].pages)
        )
        assert launch.bytes.sum(dtype=np.int64) == sum(o.bytes for o in trace.objects)


def test_intensity_is_all_flops_over_all_bytes_at_the_efficiency() -> None:
    n = 1000
    launch = read(program("GMV", bytes=4 * (n * n + 2 * n), efficiency=0.5))[0]
    assert launch.intensity == pytest.approx(2 * n * n / launch.bytes.sum(dtype=np.int64) / 0.5)


def test_a_wave_has_as_many_lanes_as_a_column_has_pages() -> None:
    n = 40_000  # floats: 160,000 bytes, 3 pages
    launch = next(iter(program("GMV", bytes=4 * (n * n + 2 * n)).launches()))
    segment = next(iter(launch.segments))
    assert len(segment.starts) - 1 == 3


def test_lanes_of_the_papers_size_never_fault_half_a_tree() -> None:
    """Sixteen lanes would fault on exactly half a region's pages, and nothing was prefetched."""
    segment = next(iter(next(iter(program("GMV").launches())).segments))
    assert len(segment.starts) - 1 == 5
