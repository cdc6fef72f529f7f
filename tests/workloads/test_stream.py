from __future__ import annotations

import numpy as np
import pytest

from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Provenance
from tidegate.units import KiB, MiB
from workloads.read_traces import pages_of, program, read


def test_copy_reads_and_writes_each_page_once_in_step() -> None:
    trace = program("stream", bytes=16 * MiB)
    (launch,) = read(trace)
    np.testing.assert_array_equal(launch.page[0::2], np.arange(128))
    np.testing.assert_array_equal(launch.page[1::2], 128 + np.arange(128))
    np.testing.assert_array_equal(launch.write, np.tile([0, 1], 128))
    np.testing.assert_array_equal(launch.reference, launch.write)
    assert trace.provenance is Provenance.DERIVED


def test_the_thread_blocks_of_a_page_are_one_block() -> None:
    (launch,) = read(program("stream", bytes=1 * MiB))
    assert launch.width == 64  # of 1 KiB each in 64 KiB
    assert (np.diff(launch.starts) == 2).all()


def test_a_thread_block_of_several_pages_is_one_block() -> None:
    (launch,) = read(program("stream", Geometry(256, 4096), bytes=64 * KiB))
    assert launch.width == 1
    assert (np.diff(launch.starts) == 2 * 4).all()


@pytest.mark.parametrize("share", [0, 0.1, 1 / 3, 0.5, 0.8, 1])
def test_share_of_writes(share: float) -> None:
    trace = program("stream", bytes=100 * MiB, writes=share)
    (launch,) = read(trace)
    pages = sum(o.pages for o in trace.objects)
    assert len(launch.page) == pages, "each page once"
    assert set(launch.page.tolist()) == pages_of(trace, "a", "b")
    assert launch.write.sum() == pytest.approx(share * pages, abs=1)
    assert set(launch.page[launch.write == 1].tolist()) == pages_of(trace, "b")


def test_unequal_objects_go_forward_together() -> None:
    (launch,) = read(program("stream", bytes=40 * 64 * KiB, writes=0.25))
    read_by_then = np.cumsum(launch.write == 0)[launch.write == 1]
    np.testing.assert_array_equal(read_by_then, 1 + 3 * np.arange(10))
