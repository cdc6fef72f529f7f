"""Trace files: what is read equals what was saved, and a file is written whole or not at all."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from unittest import mock

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import TidegateError
from tidegate.experiments import run
from tidegate.trace import Launch, Provenance, Trace, TraceFile, file, save_trace
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import DTYPES, Copy
from tidegate.workloads import workloads
from traces import SMALL, Given, Kernel, Touch, machine, reads, run_of
from workloads.read_traces import SMALL as FEW
from workloads.read_traces import read as read_launches

OBJECTS = [13, 20, 3]  # pages; their regions begin at 0, 16 and 40


TOLD = [f for f in fields(Launch) if f.name != "segments"]


class NamedLaunches(Given):
    """A trace whose launches have names."""

    name, provenance = "named", Provenance.RECORDED

    def __init__(self, kernels: list[Kernel], names: list[str]):
        super().__init__(kernels, OBJECTS)
        self.names = names

    def launches(self) -> Iterator[Launch]:
        for kernel, name in zip(self.kernels, self.names, strict=True):
            yield kernel.launch(name)


class StrangeObjects(NamedLaunches):
    """The same, with objects that hold host data in part, or are read-mostly."""

    def __init__(self, kernels: list[Kernel], names: list[str]):
        super().__init__(kernels, names)
        a, b, c = self.objects
        self.objects = (
            replace(a, host=((0, 5), (9000, 9001))),
            replace(b, host=(), read_mostly=True),
            c,
        )
        self.first_touch = False


def page_numbers() -> list[int]:
    return [o.first_page + i for o in Given([], OBJECTS).objects for i in range(o.pages)]


touches = st.builds(
    Touch,
    st.sampled_from(page_numbers()),
    st.booleans(),
    st.integers(0, SMALL.page),
    st.integers(-(2**15), 2**15 - 1),
)
blocks = st.lists(touches, min_size=1, max_size=5)
ranges = st.tuples(st.integers(0, 20), st.integers(21, 43))
told = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(DTYPES),
        "place": st.text(max_size=3),
        "copies": st.lists(
            st.builds(
                Copy,
                st.integers(0, 20),
                st.integers(1, 20),
                st.sampled_from(("near", "far")),
                st.booleans(),
            ),
            max_size=2,
        ).map(tuple),
        "frees": st.lists(ranges, max_size=2).map(tuple),
    }
)
kernels = st.builds(
    Kernel,
    st.lists(blocks, min_size=1, max_size=8),
    st.integers(1, 9),
    st.just(0.0),
    st.tuples(st.integers(0, 8), st.integers(0, 8)),
    st.builds(
        lambda told, pace: told | pace,
        told,
        st.dictionaries(st.sampled_from(("duration", "flops")), st.floats(0, 1e12), max_size=1),
    ),
) | st.builds(
    Kernel,
    st.lists(blocks, min_size=1, max_size=8),
    st.integers(1, 9),
    st.floats(0, 100),
    st.tuples(st.integers(0, 8), st.integers(0, 8)),
    told,
)
traces = st.lists(st.tuples(kernels, st.text(max_size=5)), min_size=1, max_size=4).map(
    lambda pairs: StrangeObjects(*map(list, zip(*pairs, strict=True)))
)


def whole(trace: Trace) -> list[tuple]:
    """Every launch: what is known of it, and its blocks as lists of touches, however cut."""
    found = []
    for launch in trace.launches():
        rows = []
        for s in launch.segments:
            columns = [c.tolist() for c in (s.page, s.write, s.bytes, s.reference)]
            rows += [
                [*zip(*(c[a:b] for c in columns), strict=True)]
                for a, b in zip(s.starts[:-1], s.starts[1:], strict=True)
            ]
        found.append((*(getattr(launch, f.name) for f in TOLD), rows))
    return found


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("traces") / "trace.parquet"


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(trace=traces, rows=st.sampled_from([1, 2, 7, 1 << 20]))
def test_what_is_saved_is_what_is_read(path, trace, rows):
    with mock.patch.object(file, "_ROWS", rows):  # so that blocks and launches lie across batches
        save_trace(trace, path)
        read = TraceFile(path)
        assert whole(read) == whole(trace)
        assert whole(read) == whole(trace)  # a second time too
    assert (read.name, read.provenance, read.geometry, read.objects, read.first_touch) == (
        "named",
        Provenance.RECORDED,
        SMALL,
        trace.objects,
        False,
    )
    np.testing.assert_array_equal(read.unwritten(), trace.unwritten())
    assert (read.pages, read.regions, read.footprint) == (
        trace.pages,
        trace.regions,
        trace.footprint,
    )


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    trace=traces,
    slots=st.sampled_from([1, 3, 16]),
    frames=st.integers(1, 5),
    policy=st.sampled_from(["lrm", "lru-ideal", "belady"]),
    rows=st.sampled_from([3, 1 << 20]),
)
def test_a_run_from_the_file_is_the_run_of_the_program(path, trace, slots, frames, policy, rows):
    with mock.patch.object(file, "_ROWS", rows):
        here, there = (
            run_of(source, machine(slots), frames, eviction=policy, prefetch="tree")
            for source in (trace, TraceFile(save_trace(trace, path)))
        )
    assert here.counts == there.counts
    assert here.parts == there.parts
    assert here.busy == there.busy
    assert here.tables == there.tables


@pytest.mark.slow
@pytest.mark.parametrize("name", workloads.names())
def test_every_workload_comes_back(path, name):
    kind = workloads.find(name)
    trace = kind(bytes="1MiB", **{k: v for k, v in FEW.items() if k in kind.options()}).trace(
        Geometry.parse("16KiB/128KiB")
    )
    for one, other in zip(
        read_launches(TraceFile(save_trace(trace, path))), read_launches(trace), strict=True
    ):
        assert (one.name, one.width, one.intensity) == (other.name, other.width, other.intensity)
        for column in ("starts", "page", "write", "bytes", "reference"):
            np.testing.assert_array_equal(getattr(one, column), getattr(other, column))
    assert (TraceFile(path).first_touch, TraceFile(path).objects) == (
        trace.first_touch,
        trace.objects,
    )


@pytest.mark.parametrize("name", ["2DC", "cppe-HOT", "gmt-Srad", "openmp-nn"])
def test_a_run_of_a_saved_workload_is_that_of_the_workload(path, name):
    trace = workloads.find(name)(bytes="1MiB").trace(Geometry.parse("16KiB/128KiB"))
    save_trace(trace, path)
    asked = {"oversubscribe": "100%", "machine": "gpgpusim-28sm", "cache": False}
    here, there = run(trace, **asked), run(path, **asked)
    assert (here.counts, here.parts, here.tables, here.facts) == (
        there.counts,
        there.parts,
        there.tables,
        there.facts,
    )


def test_any_parquet_tool_can_open_it(path):
    save_trace(
        NamedLaunches([Kernel([reads([0, 1]), reads([2], write=True, reference=7)])], ["k"]), path
    )
    assert pl.read_parquet(path).to_dict(as_series=False) == {
        "launch": [0, 0, 0],
        "block": [0, 0, 1],
        "page": [0, 1, 2],
        "write": [0, 0, 1],
        "bytes": [4096] * 3,
        "reference": [0, 0, 7],
        "name": ["k"] * 3,
        "width": [1] * 3,
        "intensity": [0.0] * 3,
        "details": ["{}"] * 3,
    }


def test_it_is_compressed_with_zstd(path):
    save_trace(workloads.make("cyclic(bytes=64MiB, passes=8)").trace(), path)
    assert path.stat().st_size < 8 * 1024 * 4  # 8,192 touches
    assert b"\x28\xb5\x2f\xfd" in path.read_bytes()  # a zstd frame begins so


def test_launches_of_one_name_stay_apart(path):
    trace = NamedLaunches(
        [Kernel([reads([0])]), Kernel([reads([0])]), Kernel([reads([1])])], ["k", "k", "k"]
    )
    assert [rows for *_, rows in whole(TraceFile(save_trace(trace, path)))] == [
        rows for *_, rows in whole(trace)
    ]


def test_the_file_names_the_run(path):
    trace = NamedLaunches([Kernel([reads([0, 1, 2])])], ["k"])
    first = TraceFile(save_trace(trace, path)).identity()
    assert TraceFile(save_trace(trace, path)).identity() == first
    assert (
        TraceFile(save_trace(NamedLaunches([Kernel([reads([0, 1, 3])])], ["k"]), path)).identity()
        != first
    )


# What a file cannot hold: a row is a touch, so launches without touches have no rows


def test_blocks_without_touches_are_not_kept(path):
    trace = NamedLaunches([Kernel([[], reads([0]), [], [], reads([1, 2]), []])], ["k"])
    assert [
        len(block) for *_, rows in whole(TraceFile(save_trace(trace, path))) for block in rows
    ] == [1, 2]


def test_segments_without_blocks_are_harmless(path):
    trace = NamedLaunches([Kernel([reads([0]), reads([1])], cuts=(0, 1, 1))], ["k"])
    assert len(trace.kernels[0].segments()) == 3
    read = TraceFile(save_trace(trace, path))
    assert whole(read) == whole(trace)
    assert run_of(read, machine(2), 2).parts == run_of(trace, machine(2), 2).parts


def test_blocks_without_touches_make_no_difference(path):
    rng = np.random.default_rng(1)
    for _ in range(20):
        kernel = Kernel(
            [reads(rng.integers(0, 13, n), bytes=64) for n in rng.integers(0, 4, 12)] + [reads([0])]
        )
        trace = NamedLaunches([kernel], ["k"])
        here, there = (
            run_of(t, machine(3), 1) for t in (trace, TraceFile(save_trace(trace, path)))
        )
        assert (here.counts, here.parts) == (there.counts, there.parts)


def test_launches_without_touches_are_kept_or_refused(path):
    trace = NamedLaunches([Kernel([reads([0])]), Kernel([]), Kernel([reads([1])])], ["a", "b", "c"])
    try:
        save_trace(trace, path)
    except TidegateError:
        return
    assert [name for name, *_ in whole(TraceFile(path))] == ["a", "b", "c"]


def test_a_trace_without_touches_can_be_saved_but_not_run(path):
    read = TraceFile(save_trace(NamedLaunches([], []), path))
    assert whole(read) == []
    with pytest.raises(TidegateError, match="trace named is empty: it touches nothing"):
        run_of(read, machine(), 2)


# Whole or not at all


class Breaks(NamedLaunches):
    """A trace that ends badly after its launches."""

    def __init__(self, error: BaseException):
        super().__init__([Kernel([reads(range(8))])], ["k"])
        self.error = error

    def launches(self) -> Iterator[Launch]:
        yield from super().launches()
        raise self.error


@pytest.mark.parametrize(
    "error",
    [
        ValueError("odd"),
        TidegateError("clear"),
        KeyboardInterrupt(),
        MemoryError(),
        OSError(5, "gone"),
    ],
)
@pytest.mark.parametrize("old", [None, b"the old trace"])
def test_what_ends_badly_leaves_nothing(tmp_path, error, old):
    target = tmp_path / "trace.parquet"
    if old is not None:
        target.write_bytes(old)
    with pytest.raises(type(error)) as raised:
        save_trace(Breaks(error), target)
    assert raised.value is error  # not the error that polars wraps it in
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == (
        {} if old is None else {"trace.parquet": old}
    )


def test_what_cannot_be_put_in_place_leaves_nothing(tmp_path):
    with (
        mock.patch("os.replace", side_effect=OSError(28, "No space left")),
        pytest.raises(TidegateError, match="No space left"),
    ):
        save_trace(NamedLaunches([Kernel([reads([0])])], ["k"]), tmp_path / "trace.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["nowhere/trace.parquet", "file/trace.parquet", "folder.parquet"])
def test_where_it_cannot_be_written(tmp_path, where):
    (tmp_path / "file").write_text("kept")
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(TidegateError, match="cannot write"):
        save_trace(NamedLaunches([Kernel([reads([0])])], ["k"]), tmp_path / where)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder.parquet"]


def test_progress_counts_touches(path):
    progress: list[int] = []
    save_trace(workloads.make("cyclic(bytes=8MiB, passes=3)").trace(), path, progress.append)
    assert sum(progress) == 3 * 128


# Memory

LARGE = """
import resource, sys
import numpy as np
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import DTYPES, Copy
from tidegate.trace import Launch, Provenance, Trace, TraceFile, blocks_of, lay_out, save_trace

class Large(Trace):
    name, geometry, provenance = "large", Geometry(), Provenance.ASSUMED
    objects = lay_out({"a": 1 << 30}, geometry)
    def identity(self): return {}
    def launches(self):
        pages = np.arange(1 << 20) % 16384
        yield Launch("k", (blocks_of(16, pages, bytes=64) for _ in range(32)))

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

before = peak()
save_trace(Large(), sys.argv[1])
saved = peak()
touches = sum(s.touches for launch in TraceFile(sys.argv[1]).launches() for s in launch.segments)
print(touches, saved - before, peak() - before)
"""


@pytest.mark.slow
def test_memory_is_bounded(tmp_path):
    """32 Mi touches are 1.6 GiB as one table; neither way may they be in memory at once."""
    ran = subprocess.run(
        [sys.executable, "-c", LARGE, tmp_path / "large.parquet"],
        capture_output=True,
        text=True,
        check=True,
    )
    touches, saving, both = map(int, ran.stdout.split())
    assert touches == 32 << 20
    assert saving < 400  # MiB
    assert both < 1200  # polars reads some way ahead
