from __future__ import annotations

import numpy as np
import pytest

from tidegate.errors import TidegateError
from tidegate.trace.trace import Provenance
from tidegate.units import KiB, MiB
from workloads.read_traces import program, read


def test_each_pass_is_a_launch_over_all_pages_in_order() -> None:
    trace = program("cyclic", bytes=8 * MiB, passes=3)
    launches = read(trace)
    assert [launch.name for launch in launches] == ["pass"] * 3
    for launch in launches:
        np.testing.assert_array_equal(launch.page, np.arange(128))
        assert not launch.write.any()
        assert (launch.bytes == 64 * KiB).all()


def test_blocks_have_the_pages_asked_for_and_the_last_the_rest() -> None:
    launch, *_ = read(program("cyclic", bytes=10 * 64 * KiB, block=4))
    np.testing.assert_array_equal(np.diff(launch.starts), [4, 4, 2])


def test_last_page_is_used_as_far_as_the_array_goes() -> None:
    launch, *_ = read(program("cyclic", bytes=64 * KiB + 100))
    np.testing.assert_array_equal(launch.bytes, [64 * KiB, 100])


def test_an_array_of_many_segments_is_whole() -> None:
    trace = program("cyclic", bytes="150GB", passes=1)
    (launch,) = trace.launches()
    segments = list(launch.segments)
    assert len(segments) > 1
    np.testing.assert_array_equal(
        np.concatenate([s.page for s in segments]), np.arange(trace.objects[0].pages)
    )


def test_is_labelled_assumed_and_refuses_nonsense() -> None:
    assert program("cyclic").provenance is Provenance.ASSUMED
    for wrong in ({"passes": 0}, {"block": 0}):
        with pytest.raises(TidegateError, match="must be at least 1"):
            program("cyclic", **wrong)
