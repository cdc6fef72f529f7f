"""Objects, segments and their builders."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import TidegateError
from tidegate.trace import Copy, Launch, Object, Segment, SegmentBuilder, blocks_of, lay_out
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import check_launch
from traces import Given

geometries = st.builds(
    lambda page, ratio: Geometry(1 << page, 1 << page + ratio),
    st.integers(0, 20),
    st.integers(0, 10),
)


@given(sizes=st.lists(st.integers(1, 10**9), min_size=1, max_size=8), geometry=geometries)
def test_objects_lie_one_after_another_at_region_boundaries(sizes, geometry):
    objects = lay_out({str(i): size for i, size in enumerate(sizes)}, geometry)
    end = 0
    for o, size in zip(objects, sizes, strict=True):
        assert o.bytes == size
        assert (o.pages - 1) * geometry.page < size <= o.pages * geometry.page
        assert o.first_page % geometry.pages_per_region == 0
        assert end <= o.first_page < end + geometry.pages_per_region  # no region is left out
        end = o.first_page + o.pages


@given(objects=st.lists(st.integers(1, 40), min_size=1, max_size=6))
def test_pages_regions_and_footprint(objects):
    trace = Given([], objects)
    assert trace.footprint == sum(objects) * trace.geometry.page
    assert trace.regions == sum(-(-pages // 8) for pages in objects)
    assert trace.pages == 8 * trace.regions


@given(length=st.integers(1, 9), touches=st.integers(0, 30))
def test_blocks_of_equal_length(length, touches):
    s = blocks_of(length, range(touches), bytes=7)
    assert (s.touches, s.blocks) == (touches, -(-touches // length))
    lengths = np.diff(s.starts)
    assert (lengths[:-1] == length).all()
    assert lengths.sum() == touches
    assert (s.bytes == 7).all()
    assert not s.write.any()


def test_columns_have_their_types_whatever_was_given():
    s = blocks_of(
        2, [0, 1, 2], bytes=[1.0, 2.0, 3.0], write=[True, False, True], reference=range(3)
    )
    assert [c.dtype for c in (s.starts, s.page, s.write, s.bytes, s.reference)] == [
        np.int64,
        np.int32,
        np.uint8,
        np.int32,
        np.int16,
    ]
    assert all(c.flags.c_contiguous for c in (s.starts, s.page, s.write, s.bytes, s.reference))
    assert s.write.tolist() == [1, 0, 1]


@given(blocks=st.lists(st.lists(st.integers(0, 100), min_size=1, max_size=5), max_size=8))
def test_built_block_by_block(blocks):
    build = SegmentBuilder()
    for block in blocks:
        build.block(block, bytes=64, write=1)
    segments = list(build.segments())
    assert len(segments) == bool(blocks)
    for s in segments:
        assert [
            s.page[a:b].tolist() for a, b in zip(s.starts[:-1], s.starts[1:], strict=True)
        ] == blocks
    assert list(build.segments()) == []  # the builder is empty


def test_a_builder_says_when_it_is_full():
    build = SegmentBuilder()
    build.block(np.zeros(1 << 19), bytes=1)
    assert not build.full
    build.block(np.zeros(1 << 19), bytes=1)
    assert build.full
    assert [s.touches for s in build.segments()] == [1 << 20]
    assert not build.full


@pytest.mark.parametrize(("page", "region"), [(0, 64), (3, 64), (64, 96), (128, 64), (-64, 64)])
def test_geometries_that_cannot_be(page, region):
    with pytest.raises(TidegateError):
        Geometry(page, region)


@given(geometry=geometries, size=st.integers(0, 10**12))
def test_pages_and_regions_of_a_size(geometry, size):
    assert geometry.pages(size) * geometry.page >= size > (geometry.pages(size) - 1) * geometry.page
    assert geometry.regions(size) * geometry.pages_per_region >= geometry.pages(size)


def test_the_default_geometry_is_the_driver_s():
    assert Geometry() == Geometry.parse("64KiB/2MiB")
    assert str(Geometry()) == "64.0 KiB / 2.00 MiB"


@pytest.mark.parametrize(
    "columns",
    [
        ([0, 3], [0, 1], [0, 0], [1, 1], [0, 0]),  # starts end beyond the touches
        ([1, 2], [0, 1], [0, 0], [1, 1], [0, 0]),  # they do not begin at 0
        ([0, 2, 1, 2], [0, 1], [0, 0], [1, 1], [0, 0]),  # they fall
        ([0, 2], [0, 1], [0], [1, 1], [0, 0]),  # a column is too short
    ],
)
def test_segments_that_cannot_be(columns):
    with pytest.raises(TidegateError):
        Segment(*map(np.array, columns))


@given(data=st.data(), size=st.integers(1, 5000))
def test_pages_without_host_data_are_unwritten(data, size):
    geometry = Geometry(64, 256)
    one = st.tuples(st.integers(0, size - 1), st.integers(1, size)).map(
        lambda r: (r[0], min(size, r[0] + r[1]))
    )
    host = tuple(data.draw(st.lists(one, max_size=3)))
    trace = Given([], [1, 1], geometry)
    before, (plain,) = (lay_out({"x": 300}, geometry), lay_out({"y": size}, geometry))
    own = replace(plain, first_page=8, host=host)
    trace.objects = (*before, own)
    held = {8 + byte // 64 for first, end in host for byte in range(first, end)}
    expected = [8 <= page < 8 + own.pages and page not in held for page in range(trace.pages)]
    assert trace.unwritten().tolist() == expected


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"duration": -1.0}, "duration of launch k must be at least 0"),
        ({"flops": float("nan")}, "flops of launch k must be at least 0"),
        ({"duration": 1.0, "intensity": 2.0}, "has intensity and duration; .* give one"),
        ({"dtype": "bf17"}, "unknown dtype of launch k 'bf17'; did you mean 'bf16'"),
    ],
)
def test_launches_that_cannot_be(fields, message):
    with pytest.raises(TidegateError, match=message):
        Launch("k", (), **fields)


def test_other_things_that_cannot_be():
    with pytest.raises(TidegateError, match="must go to near or far, got 'away'"):
        Copy(0, 1, "away")
    with pytest.raises(TidegateError, match="within its 10 bytes, got 0 to 11"):
        Object("a", 10, 0, 1, host=((0, 11),))
    for told in ({"frees": ((0, 17),)}, {"copies": (Copy(16, 1),)}, {"frees": ((3, 3),)}):
        with pytest.raises(TidegateError, match="its pages run from 0 to 15"):
            check_launch(Launch("k", (), **told), Given([], [16]))


def test_the_place_of_a_launch_is_its_name_unless_given():
    assert Launch("k", ()).place == "k"
    assert Launch("k", (), place="main.c:7").place == "main.c:7"
