"""Expansion to pages: against plain Python, and by formula for a chain of tensors."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

import tidegate
from op_lists import KIB, MIB, chain, small_ops
from tidegate.cli import invoke
from tidegate.errors import TidegateError
from tidegate.trace import save_trace
from tidegate.trace.geometry import Geometry
from tidegate.trace.info import describe
from tidegate.trace.ops import OpLayout, Ops, OpsBuilder, OpTrace, save_ops
from tidegate.trace.ops.allocators import ALLOCATORS, place
from tidegate.trace.ops.expand import BLOCK_TOUCHES, _draw
from tidegate.trace.trace import Provenance

SMALL = Geometry(4 * KIB, 64 * KIB)


def touches(trace: OpTrace) -> Iterator[list[tuple[int, int, int, int]]]:
    """Yield each launch's touches: page, write, bytes, reference."""
    for launch in trace.launches():
        rows = []
        for s in launch.segments:
            assert (np.diff(s.starts)[:-1] == BLOCK_TOUCHES).all()
            columns = (c.tolist() for c in (s.page, s.write, s.bytes, s.reference))
            rows += list(zip(*columns, strict=True))
        yield rows


def pages_of(low: int, high: int, used: int, row: int, stride: int, page: int, draw) -> list[int]:
    """The pages that an operand touches, in order, by going through its rows."""
    every = list(range(low // page, (high - 1) // page + 1))
    if row and not stride:
        rows = max(1, used // row)
        return sorted({every[i] for i in draw(rows)}) if rows < 8 * len(every) else every
    if not row or stride - row < page:
        return every
    found = []
    for begin in range(low, high, stride):
        end = min(begin + row, high)
        found += range(begin // page, (end - 1) // page + 1)
    return found


def plain_touches(ops: Ops, allocator: str, geometry: Geometry) -> Iterator[list[tuple[int, ...]]]:
    """The oracle: every operand's pages in plain Python, merged by exact fractions."""
    places, page = place(ops, allocator), geometry.page
    trace = OpTrace(ops, geometry, OpLayout(allocator=allocator))
    for launch in range(len(ops.launches)):
        own = [
            (number, row)
            for number, row in enumerate(ops.operands.iter_rows(named=True))
            if row["launch"] == launch
        ]
        own.sort(key=lambda pair: pair[1]["group"])
        merged = []
        for reference, (number, row) in enumerate(own):
            life = ops.instances.of_operand[number]
            base = trace.objects[places.object[life]].first_page * page + int(places.offset[life])
            low, high = base + row["low"], base + row["high"]

            def draw(n, low=low, high=high, reference=reference, launch=launch):
                count = (high - 1) // page - low // page + 1
                return _draw(n, count, launch, reference).tolist()

            found = pages_of(low, high, row["bytes"], row["row"], row["stride"], page, draw)
            swept = len(found) == (high - 1) // page - low // page + 1 and not (
                row["row"] and row["stride"] - row["row"] >= page
            )
            swept = swept and not (
                row["row"]
                and not row["stride"]
                and max(1, row["bytes"] // row["row"]) < 8 * len(found)
            )
            for j, each in enumerate(found):
                inside = min(high, (each + 1) * page) - max(low, each * page)
                size = (
                    int(inside * (row["bytes"] / (high - low)) + 0.5)
                    if swept
                    else row["bytes"] // len(found)
                )
                at = Fraction(2 * j + 1, 2 * len(found))
                key = (row["group"], at, reference)
                touch = (each, int(row["write"]), max(1, min(page, size)), reference)
                merged.append((key, touch))
        if own:
            yield [touch for _, touch in sorted(merged)]


@pytest.mark.slow
@pytest.mark.oracle
@pytest.mark.parametrize("allocator", ALLOCATORS)
@settings(max_examples=40, deadline=None)
@given(ops=small_ops(300 * KIB))
def test_expansion_equals_plain_python(allocator, ops):
    trace = OpTrace(ops, SMALL, OpLayout(allocator=allocator))
    assert list(touches(trace)) == list(plain_touches(ops, allocator, SMALL))


@settings(max_examples=20, deadline=None)
@given(ops=small_ops())
def test_pages_that_hold_data_follow_the_lives_of_tensors(ops):
    """Freed pages have no live tensor on them, and pages of dead tensors only are freed."""
    for allocator in ALLOCATORS:
        trace = OpTrace(ops, SMALL, OpLayout(allocator=allocator))
        lives, page = ops.instances, SMALL.page
        places = place(ops, allocator)
        at = np.array([o.first_page for o in trace.objects])[places.object] * page + places.offset
        size = ops.tensors["bytes"].to_numpy()[lives.tensor]
        event_launch = ops.events["launch"].to_numpy()
        for n in range(len(ops.launches)):
            after = event_launch[lives.birth] <= n
            dying = (lives.death >= 0) & (event_launch[np.maximum(lives.death, 0)] == n + 1)
            gone = (lives.death >= 0) & (event_launch[np.maximum(lives.death, 0)] <= n + 1)
            there: set[int] = set()
            for life in np.flatnonzero(after & ~gone):
                there |= set(range(at[life] // page, (at[life] + size[life] - 1) // page + 1))
            expected: set[int] = set()
            for life in np.flatnonzero(dying):
                own = range(at[life] // page, (at[life] + size[life] - 1) // page + 1)
                expected |= set(own) - there
            freed = {p for a, b in trace._frees.get(n, ()) for p in range(a, b)}
            assert freed <= expected
            if allocator == "tensors":
                large = {
                    p
                    for life in np.flatnonzero(dying & places.own)
                    for p in range(at[life] // page, (at[life] + size[life] - 1) // page + 1)
                }
                assert large <= freed


@pytest.mark.closed_form
def test_a_chain_by_formula():
    sizes = [2 * MIB, 4 * MIB, 2 * MIB + 1]
    trace = OpTrace(chain(sizes), Geometry())
    assert [o.host for o in trace.objects] == [((0, 2 * MIB),), (), ()]
    assert trace.footprint == 6 * MIB + 64 * KIB
    first, second = trace.launches()
    assert (first.name, first.dtype, first.flops) == ("model/op1", "bf16", 1000 / 0.6)
    assert first.frees == ((0, 32),)
    assert second.frees == ((32, 96),)
    rows = list(touches(trace))
    assert [len(r) for r in rows] == [32 + 64, 64 + 33]
    # two pages are written for each that is read
    assert [page for page, write, *_ in rows[0][:6]] == [32, 0, 33, 34, 1, 35]
    assert sum(size for _, _, size, _ in rows[1]) == 6 * MIB + 1
    assert describe(trace).live_peak == 64 + 33


def test_steps_that_do_the_same_have_the_same_places():
    build = OpsBuilder()
    weight = build.tensor("w", "weight", 2 * MIB, host=True)
    for step, size in enumerate([4 * MIB, 2 * MIB, 2 * MIB]):
        x = build.tensor("x", "activation", size)
        build.launch("mm", "layer", "forward", step)
        build.use(weight, 0, 2 * MIB)
        build.use(x, 0, size, write=True)
        build.die(x)
    trace = OpTrace(build.finish("steps", Provenance.ASSUMED), Geometry())
    assert [launch.place for launch in trace.launches()] == [
        "layer/mm 0:0",
        "layer/mm 1:0",
        "layer/mm 1:0",
    ]


def test_the_same_every_time_and_another_for_another_layout(tmp_path):
    ops = chain([2 * MIB, 3 * MIB, 100])
    a, b = OpTrace(ops, Geometry()), OpTrace(ops, Geometry())
    assert list(touches(a)) == list(touches(b)) == list(touches(a))
    assert a.identity() == b.identity()
    others = [
        OpTrace(ops, SMALL),
        OpTrace(ops, Geometry(), OpLayout(allocator="caching")),
        OpTrace(ops, Geometry(), OpLayout(efficiency=0.5)),
        OpTrace(chain([2 * MIB, 3 * MIB, 101]), Geometry()),
    ]
    assert all(o.identity() != a.identity() for o in others)


def test_too_many_pages_are_refused():
    ops = chain([1 << 46, 1 << 46])
    with pytest.raises(TidegateError, match="give larger pages"):
        OpTrace(ops, Geometry())


# Everywhere a trace can be named


@pytest.fixture
def file(tmp_path):
    return save_ops(chain([2 * MIB, 4 * MIB, 8 * MIB, 4 * MIB]), tmp_path / "a.parquet")


def test_runs_take_it_for_any_geometry_and_allocator(file):
    run = tidegate.run(file, near="8MiB", cache=False)
    assert run.facts["footprint_bytes"] == 12 * MIB
    assert run.counts["touches"] == (2 + 4 + 4 + 8 + 8 + 4) * 16
    segments = tidegate.run(f"{file}(allocator=caching)", near="8MiB", cache=False)
    assert segments.facts["footprint_bytes"] == 20 * MIB  # one segment
    assert (
        tidegate.run(file, near="8MiB", geometry="4KiB/64KiB", cache=False).counts["touches"]
        == 16 * run.counts["touches"]
    )


def test_info_shows_the_peak_by_kind(file, capsys):
    assert invoke(["trace", "info", str(file)]) == 0
    out = capsys.readouterr().out
    assert "peak of live tensors 12.0 MiB, before launch 1 (model/op2, forward of step 1)" in out
    assert "activation" in out


def test_a_trace_saved_from_ops_plays_the_same(file, tmp_path):
    spec = tidegate.RunSpec(file)
    saved = save_trace(spec.trace(), tmp_path / "pages.parquet")
    a = tidegate.run(file, near="8MiB", cache=False)
    b = tidegate.run(saved, near="8MiB", cache=False)
    assert (a.counts, a.parts) == (b.counts, b.parts)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}(allocator=cachin)", "allocator must be one of tensors, caching"),
        ("{}(pages=3)", "unknown option of ops 'pages'"),
        ("{}(efficiency=0)", "efficiency must be at least 0.001"),
    ],
)
def test_wrong_options_are_named(file, text, message):
    with pytest.raises(TidegateError, match=message):
        tidegate.run(text.format(file))


def test_sizes_and_options_that_make_no_sense(file, tmp_path):
    with pytest.raises(TidegateError, match="has its size already"):
        tidegate.run(file, bytes="1GiB")
    saved = save_trace(tidegate.RunSpec("cyclic(bytes=4MiB)").trace(), tmp_path / "c.parquet")
    with pytest.raises(TidegateError, match="holds no ops"):
        tidegate.run(f"{saved}(allocator=caching)")
