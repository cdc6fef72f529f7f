"""Properties of every registered workload."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import TidegateError
from tidegate.trace.geometry import Geometry
from tidegate.units import MiB
from tidegate.workloads import Workload, workloads
from tidegate.workloads.suites import members, suites
from workloads.read_traces import SMALL, read

NAMES = workloads.names()
# their default is the paper's size
PUBLISHED = {member.name for name in suites() for member in members(name)}
geometries = st.builds(
    lambda page, ratio: Geometry(1 << page, 1 << page + ratio),
    st.integers(8, 16),
    st.integers(0, 6),
)


def small(name: str, size: int) -> Workload:
    kind = workloads.find(name)
    return kind(bytes=size, **{k: v for k, v in SMALL.items() if k in kind.options()})


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12, deadline=None)
@given(size=st.integers(400, 1 << 20), geometry=geometries)
def test_touches_lie_within_objects(name: str, size: int, geometry: Geometry) -> None:
    trace = small(name, size).trace(geometry)
    within = np.zeros(trace.pages, dtype=np.int64)  # bytes of an object in each page
    for o in trace.objects:
        within[o.first_page : o.first_page + o.pages] = geometry.page
        within[o.first_page + o.pages - 1] -= o.pages * geometry.page - o.bytes
    launches = read(trace)
    assert launches
    for launch in launches:
        assert launch.page.min() >= 0
        assert launch.page.max() < trace.pages
        assert (launch.bytes > 0).all()
        assert (launch.bytes <= within[launch.page]).all()
        assert set(np.unique(launch.write)) <= {0, 1}
        assert launch.width >= 1
        assert launch.intensity >= 0


@pytest.mark.parametrize("name", NAMES)
def test_streams_the_same_twice(name: str) -> None:
    trace = small(name, 3 * MiB).trace()
    for once, again in zip(read(trace), read(trace), strict=True):
        for column in ("starts", "page", "write", "bytes", "reference"):
            np.testing.assert_array_equal(getattr(once, column), getattr(again, column))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [50 * MiB, 10**9, 10_100_000_000, 64 * MiB + 12345])
def test_footprint_is_what_was_asked_for(name: str, size: int) -> None:
    total = sum(small(name, size).sizes().values())
    assert 0.99 * size <= total <= size


@pytest.mark.parametrize("name", [name for name in NAMES if name not in PUBLISHED])
def test_default_size_is_modest(name: str) -> None:
    assert 100 * MiB <= workloads.make(name).bytes <= 1024 * MiB


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wrong", [0, "-1", "much"])
def test_refuses_a_size_that_is_none(name: str, wrong: object) -> None:
    with pytest.raises(TidegateError):
        workloads.find(name)(bytes=wrong)


@pytest.mark.parametrize("name", NAMES)
def test_the_smallest_size_streams_or_is_refused(name: str) -> None:
    tiny = small(name, 1)
    if tiny.sizes() and min(tiny.sizes().values()) > 0:
        assert read(tiny.trace())
    else:
        with pytest.raises(TidegateError, match="give it more bytes"):
            tiny.trace()
