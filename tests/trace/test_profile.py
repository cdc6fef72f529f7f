"""Plans made from a trace, for programs without a compiler's plan."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import TidegateError
from tidegate.experiments.specification import RunSpec
from tidegate.trace import Launch, Trace
from tidegate.trace.plan import Plan, PlannedUse
from tidegate.trace.profile import profile
from traces import PAGE, PAGES, Given, Kernel, Touch, machine, reads, run_of, writes


class Named(Given):
    """Launches with names; each uses whole objects."""

    def __init__(self, launches: list[tuple[str, list[int]]], objects: int):
        first = [n * PAGES for n in range(objects)]
        super().__init__(
            [
                Kernel([reads(p for o in used for p in range(first[o], first[o] + PAGES))])
                for _, used in launches
            ],
            [PAGES] * objects,
        )
        self.names = [name for name, _ in launches]

    def launches(self) -> Iterator[Launch]:
        for kernel, name in zip(self.kernels, self.names, strict=True):
            yield Launch(name, iter(kernel.segments()))


def uses(plan_of: Given) -> dict[str, dict[str, PlannedUse]]:
    return {launch.name: {u.object: u for u in launch.uses} for launch in profile(plan_of).launches}


def test_localities_densities_and_copies_are_what_was_touched() -> None:
    blocks = [reads([0, 1, 1], bytes=64), writes([PAGES], bytes=PAGE)]
    plan = profile(Given([Kernel(blocks), Kernel([reads([0], bytes=64)])], [PAGES, PAGES, PAGES]))
    (launch,) = plan.launches
    by_name = {u.object: u for u in launch.uses}
    assert set(by_name) == {"o0", "o1"}  # the third is not touched
    assert by_name["o0"].locality == (3 * 64 + 64) / 2  # two launches of one name: their mean
    assert by_name["o0"].density == 128 / (PAGES * PAGE)
    assert (by_name["o0"].distance, by_name["o1"].distance) == (1, math.inf)
    assert (by_name["o0"].copied_out, by_name["o1"].copied_out) == (False, True)
    assert plan.global_locality == {"o0": 256, "o1": PAGE, "o2": 0}


programs = st.lists(
    st.tuples(
        st.sampled_from("pqr"), st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True)
    ),
    min_size=1,
    max_size=12,
)


@pytest.mark.slow
@settings(deadline=None)
@given(programs)
def test_distances_are_the_mean_of_what_follows(launches: list[tuple[str, list[int]]]) -> None:
    found = uses(Named(launches, 4))
    for name in {name for name, _ in launches}:
        for o in range(4):
            at = [i for i, (n, used) in enumerate(launches) if n == name and o in used]
            gaps = [
                next((j - i for j in range(i + 1, len(launches)) if o in launches[j][1]), None)
                for i in at
            ]
            known = [g for g in gaps if g is not None]
            expected = sum(known) / len(known) if known else math.inf
            assert (f"o{o}" in found[name]) == bool(at)
            if at:
                assert found[name][f"o{o}"].distance == pytest.approx(expected)


def test_a_program_without_a_plan_is_placed_by_its_profile_and_a_note_says_so() -> None:
    """Every launch uses object 0; objects 1 and 2 have one launch each. Object 0 stays near."""
    trace = Named([("a", [0, 1]), ("b", [0, 2])] * 4, 3)
    run = run_of(trace, machine(), 1, placement="rdm")
    assert run.counts["pages_in"] == PAGES
    assert run.counts["remote_touches"] == 8 * PAGES
    assert "perfect profile" in " ".join(run.notes)
    assert (
        not RunSpec("openmp-nn(bytes=8MB)", "v100-nvlink2", placement="rdm").run(cache=False).notes
    )


class Many(Named):
    """Launches of different names; each uses one object, in turn."""

    def __init__(self, count: int, objects: int):
        super().__init__([("", [o]) for o in range(objects)], objects)
        self.segment_of = [kernel.segments() for kernel in self.kernels]
        self.names = [f"launch {n}" for n in range(count)]

    def launches(self) -> Iterator[Launch]:
        for n, name in enumerate(self.names):
            yield Launch(name, self.segment_of[n % len(self.segment_of)])


def lines_run(trace: Trace) -> tuple[Plan, int]:
    """Profile a trace and count the lines of profile.py that this runs, repeats included."""
    count, here = 0, profile.__code__.co_filename

    def trace_line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace_line if frame.f_code.co_filename == here else None

    before = sys.gettrace()
    sys.settrace(trace_line)
    try:
        return profile(trace), count
    finally:
        sys.settrace(before)


def test_launches_of_one_name_at_two_places_are_two_launch_sites() -> None:
    here, there = ({"place": place} for place in ("here", "there"))
    kernels = [Kernel([reads([0])], told=here), Kernel([reads([PAGES])], told=there)] * 2
    trace = Given(kernels, [PAGES, PAGES])
    found = uses(trace)
    assert {place: set(used) for place, used in found.items()} == {"here": {"o0"}, "there": {"o1"}}
    assert found["here"]["o0"].distance == 2
    run = run_of(trace, machine(), 1, placement="rdm")
    assert run.tables["launches"]["name"] == ["kernel"] * 4


@pytest.mark.slow
def test_work_is_linear_in_launches() -> None:
    launches, objects = 50_000, 3
    plan, lines = lines_run(Many(launches, objects))
    assert lines < 40 * launches  # 19 when written; a line per pair of launches would be 2.5e9
    assert len(plan.launches) == launches
    assert all(use.distance == objects for x in plan.launches[:-objects] for use in x.uses)
    assert all(math.isinf(use.distance) for x in plan.launches[-objects:] for use in x.uses)


def test_a_stray_touch_is_one_clear_line() -> None:
    with pytest.raises(TidegateError, match="touches page 99"):
        profile(Given([Kernel([[Touch(99)]])], [PAGES]))
