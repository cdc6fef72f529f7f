"""SC'19's placement policies on programs small enough to decide by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import PolicyError
from tidegate.experiments.planning import Rehearsal
from tidegate.experiments.specification import RunSpec
from tidegate.papers.hybrid.findings import kept_by, locality_order
from tidegate.policies.placement.objects import ObjectPlacement
from tidegate.policies.registries import placement
from tidegate.trace.geometry import Geometry
from tidegate.trace.plan import Plan, PlannedLaunch, PlannedUse
from tidegate.trace.trace import lay_out
from traces import PAGE, PAGES, Given, Kernel, machine, reads, run_of, writes

GEOMETRY = Geometry()


def use(
    name: str, locality: float = 1, distance: float = 1, density: float | None = 1.0
) -> PlannedUse:
    return PlannedUse(name, locality, distance, density)


def decide(
    policy: str,
    frames: int,
    regions: dict[str, int],
    launches: dict[str, list[PlannedUse]],
    order: str,
    **gl: float,
) -> tuple[ObjectPlacement, Rehearsal]:
    """The policy after launches named by the letters of ``order``."""
    plan = Plan(tuple(PlannedLaunch(name, tuple(uses)) for name, uses in launches.items()), gl)
    objects = lay_out({name: n * GEOMETRY.region for name, n in regions.items()}, GEOMETRY)
    memory = Rehearsal(objects, GEOMETRY, frames, plan)
    decider = placement.make(policy)
    assert isinstance(decider, ObjectPlacement)
    decider.attach(memory)
    decider.start()
    for n, memory.place in enumerate(order):
        memory.actions = []
        decider.on_launch(n)
    decider.finished()
    return decider, memory


def near(policy: ObjectPlacement) -> dict[str, int]:
    return {name: held for name, held in policy.held.items() if held}


def test_cfd_as_in_figure_3() -> None:
    assert (locality_order(), kept_by("glm"), kept_by("rdm")) == ("V > N > F > O", "VN", "VF")


def test_rlm_prefers_what_this_launch_accesses_most() -> None:
    launches = {"1": [use("a", 5), use("b", 3)], "2": [use("b", 1), use("c", 9)]}
    sizes = {"a": 2, "b": 2, "c": 2}
    assert near(decide("rlm", 2, sizes, launches, "1")[0]) == {"a": 2}
    assert near(decide("rlm", 2, sizes, launches, "12")[0]) == {"c": 2}


def test_rlm_protects_objects_of_the_same_launch_alone() -> None:
    """a has the highest priority on record and makes room all the same; the lowest goes first."""
    sizes = {"a": 1, "b": 1, "c": 1}
    launches = {"1": [use("a", 9), use("b", 2)], "2": [use("c", 1)]}
    assert near(decide("rlm", 1, sizes, {"1": [use("a", 9)], "2": [use("c", 1)]}, "12")[0]) == {
        "c": 1
    }
    assert near(decide("rlm", 2, sizes, launches, "12")[0]) == {"a": 1, "c": 1}
    # without a record both are worth nothing, and the first allocated goes
    assert near(decide("rlm(remember=false)", 2, sizes, launches, "12")[0]) == {"b": 1, "c": 1}
    # of one launch, the lower does not replace the higher
    assert near(decide("rlm", 1, sizes, {"1": launches["1"]}, "1")[0]) == {"a": 1}


def test_glm_never_gives_up_what_the_program_accesses_most() -> None:
    launches = {"1": [use("a")], "2": [use("b")]}
    sizes = {"a": 2, "b": 2}
    assert near(decide("glm", 2, sizes, launches, "1212", a=2, b=1)[0]) == {"a": 2}
    assert near(decide("glm", 2, sizes, launches, "1212", a=1, b=2)[0]) == {"b": 2}


def test_nothing_is_replaced_unless_that_makes_room_enough() -> None:
    launches = {"1": [use("a", 1), use("b", 2)], "2": [use("c", 3)]}
    decider, _ = decide("glm", 4, {"a": 1, "b": 3, "c": 3}, launches, "12", a=1, b=4, c=2)
    # a alone would have given way, and one region is not three
    assert near(decider) == {"a": 1, "b": 3}


def test_object_lru_keeps_the_last_and_no_launch_pushes_its_own_objects_out() -> None:
    launches = {"1": [use("a"), use("b")], "2": [use("c")]}
    assert near(decide("object-lru", 2, {"a": 2, "b": 2, "c": 2}, launches, "1")[0]) == {"a": 2}
    assert near(decide("object-lru", 2, {"a": 2, "b": 2, "c": 2}, launches, "12")[0]) == {"c": 2}


def test_rdm_counts_launches_and_keeps_what_comes_back_first() -> None:
    launches = {
        "1": [use("a", distance=2)],
        "2": [use("b", distance=4)],
        "3": [use("b", distance=math.inf)],
    }
    decider, _ = decide("rdm(partial=no)", 2, {"a": 2, "b": 2}, launches, "12")
    assert near(decider) == {"a": 2}  # a comes back at 3, b at 6
    assert (decider.clock, decider.next_use) == (2, {"a": 3, "b": 6})  # type: ignore[attr-defined]


@pytest.mark.parametrize(("a", "b", "kept"), [(1, 2, "b"), (2, 1, "a"), (1, 1, "a")])
def test_rdm_breaks_ties_by_global_locality(a: float, b: float, kept: str) -> None:
    launches = {"1": [use("a", distance=2)], "2": [use("b", distance=1)]}
    assert near(decide("rdm(partial=no)", 2, {"a": 2, "b": 2}, launches, "12", a=a, b=b)[0]) == {
        kept: 2
    }


@pytest.mark.parametrize("scheme", ["rlm", "glm", "object-lru"])
def test_only_rdm_maps_parts(scheme: str) -> None:
    """3.4 describes partial mapping for RDM."""
    launches = {"1": [use("a", 9), use("b", 1)]}
    decider, _ = decide(scheme, 3, {"a": 2, "b": 2}, launches, "1", a=2, b=1)
    assert near(decider) == {"a": 2}


@pytest.mark.parametrize(
    ("partial", "held"),
    [("no", {"a": 2, "c": 1}), ("rest", {"a": 2, "b": 1, "c": 1}), ("at once", {"a": 2, "b": 2})],
)
def test_partial_mapping(partial: str, held: dict[str, int]) -> None:
    launches = {"1": [use("a", distance=1), use("b", distance=2), use("c", distance=3)]}
    decider, memory = decide(f"rdm(partial={partial})", 4, {"a": 2, "b": 5, "c": 1}, launches, "1")
    assert near(decider) == held
    far = {a.object: a.first // GEOMETRY.region for a in memory.actions if a.verb == "far"}
    assert far == {
        name: held.get(name, 0)
        for name, size in {"a": 2, "b": 5, "c": 1}.items()
        if held.get(name, 0) < size
    }


@pytest.mark.parametrize(
    ("density", "verbs"), [(0.49, []), (0.5, ["prefetch"]), (None, ["prefetch"])]
)
def test_only_what_is_used_densely_is_prefetched(density: float | None, verbs: list[str]) -> None:
    _, memory = decide("rdm", 2, {"a": 2}, {"1": [use("a", density=density)]}, "1")
    assert [a.verb for a in memory.actions] == verbs


def test_what_has_no_room_is_used_remotely_and_moves_nothing() -> None:
    run = RunSpec(
        "openmp-nn(bytes=24MB)", "v100-nvlink2", "rdm", near="8MiB", placement="rdm(partial=no)"
    ).run(cache=False)
    # locations (8 of 12 bytes) are first by global locality and do not fit; distances, 8 MB, do
    assert run.counts["pages_born"] * 65536 == pytest.approx(8e6, rel=0.02)
    assert run.counts["pages_in"] == 0  # distances are the GPU's own
    assert run.counts["remote_bytes"] == pytest.approx(16e6, rel=0.02)
    assert run.counts["evictions"] == run.counts["faults"] == 0


def test_baselines_copy_once_or_at_each_launch() -> None:
    settings = {"machine": "v100-nvlink2", "near": "64MiB"}
    once = RunSpec("openmp-hotspot(bytes=24MB, steps=4)", placement="explicit", **settings).run(
        cache=False
    )  # type: ignore[arg-type]
    each = RunSpec(
        "openmp-hotspot(bytes=24MB, steps=4)", placement="explicit(copies=launch)", **settings
    ).run(cache=False)  # type: ignore[arg-type]
    assert once.counts["pages_in"] * 65536 == pytest.approx(16e6, rel=0.02)
    assert once.counts["pages_born"] * 65536 == pytest.approx(8e6, rel=0.02)  # the first result
    # power and the source, 8 MB each, come again with each later launch; the source was the result
    # before: it goes out first
    assert each.counts["pages_in"] * 65536 == pytest.approx(16e6 + 3 * 24e6, rel=0.1)
    # both copy results back at the end
    assert each.counts["pages_written_back"] > once.counts["pages_written_back"] > 0


# Closed forms, on a machine of round numbers


KIB = PAGE / 1024


def two_objects(launches: int) -> Given:
    """Launches that read all of o0 and write all of o1, a block each."""
    return Given(
        [Kernel([reads(range(PAGES)), writes(range(PAGES, 2 * PAGES))])] * launches, [PAGES, PAGES]
    )


@pytest.mark.parametrize("policy", ["rlm", "glm", "rdm", "object-lru", "prefetch-all", "explicit"])
def test_what_fits_is_moved_once_and_never_faults(policy: str) -> None:
    """Managed memory is unmapped from the CPU before it moves; what a program copies by itself is
    not.
    """
    run = run_of(two_objects(5), machine(), 2, placement=policy)
    assert run.counts["pages_in"] == run.counts["pages_prefetched"] == 2 * PAGES
    assert run.counts["faults"] == run.counts["evictions"] == run.counts["remote_touches"] == 0
    on = machine()
    handled = on.driver.region_overhead + PAGES * KIB * on.driver.unmap_per_kib
    expected = 0.0 if policy == "explicit" else 2 * handled
    assert run.parts["fault_handling"] == pytest.approx(expected)
    assert run.parts["transfer_in"] == pytest.approx(
        2 * (on.link.run_overhead + PAGES * PAGE / on.link.inward)
    )


def test_far_objects_cost_their_bytes_over_the_remote_bandwidth_and_a_latency_each() -> None:
    on = machine(launch_overhead=0.0)
    run = run_of(two_objects(5), on, 2, placement="host")
    each = on.link.remote_latency + PAGE / (on.link.inward * on.link.remote_share)
    assert run.time == pytest.approx(5 * 2 * PAGES * each)  # one slot: one touch after another
    assert run.counts["pages_in"] == 0
    assert run.counts["remote_bytes"] == 5 * 2 * PAGES * PAGE


def test_a_baseline_that_copies_at_each_launch_copies_exactly_that() -> None:
    """o0 is read, so it comes again with each launch; o1 is written, so it goes out before it comes
    again.
    """
    launches = 5
    run = run_of(two_objects(launches), machine(), 2, placement="explicit(copies=launch)")
    assert run.counts["pages_in"] == launches * 2 * PAGES
    assert run.counts["pages_written_back"] == launches * PAGES  # the last time at the end
    once = run_of(two_objects(launches), machine(), 2, placement="explicit")
    assert (once.counts["pages_in"], once.counts["pages_written_back"]) == (2 * PAGES, PAGES)
    assert once.parts["transfer_out"] == pytest.approx(PAGES * PAGE / machine().link.outward)


def test_an_object_can_be_left_to_faults_whatever_its_density() -> None:
    run = run_of(two_objects(2), machine(), 2, placement="rdm(left=o1)")
    assert (run.counts["faults"], run.counts["pages_prefetched"]) == (PAGES, PAGES)
    with pytest.raises(
        PolicyError, match="no object o9 to be left to faults; the program has o0, o1"
    ):
        run_of(two_objects(2), machine(), 2, placement="rdm(left=o9)")


# The paper's steps once more, in plain words: a list of near objects and one rule per scheme


def by_the_paper(
    scheme: str,
    frames: int,
    sizes: dict[str, int],
    launches: dict[str, list[PlannedUse]],
    order: str,
    locality: dict[str, float],
) -> set[str]:
    """Which objects are near after these launches (3.2, 3.3, 3.4; no partial mapping)."""
    near: list[str] = []
    regional = dict.fromkeys(sizes, 0.0)
    next_use = dict.fromkeys(sizes, math.inf)
    used_at = dict.fromkeys(sizes, 0)
    for trc, name in enumerate(order, 1):
        uses = launches[name]
        regional.update({u.object: u.locality for u in uses})  # on record (3.2, book keeping)
        here = {u.object for u in uses} if scheme == "rlm" else set(sizes)
        for u in uses:
            next_use[u.object], used_at[u.object] = trc + u.distance, trc
        rank = {
            "rlm": lambda o: (regional[o],),
            "glm": lambda o: (locality[o],),
            "rdm": lambda o: (-next_use[o], locality[o]),
            "object-lru": lambda o: (used_at[o],),
        }[scheme]
        for current in sorted((u.object for u in uses), key=rank, reverse=True):
            if current in near:  # step 1
                continue
            room = frames - sum(sizes[o] for o in near)
            candidates: list[str] = []
            # step 3, repeated (4); ties as allocated
            for lowest in sorted((o for o in sizes if o in near), key=rank):
                if room >= sizes[current]:
                    break
                if lowest in here and rank(lowest) >= rank(current):
                    continue  # of the same kernel call, in RLM
                candidates.append(lowest)
                room += sizes[lowest]
            if room >= sizes[current]:  # step 2, or enough was found
                near = [o for o in near if o not in candidates] + [current]
    return set(near)


@st.composite
def programs(
    draw: Any,
) -> tuple[int, dict[str, int], dict[str, list[PlannedUse]], str, dict[str, float]]:
    sizes = {o: draw(st.integers(1, 4)) for o in "abcd"}
    distinct = draw(st.permutations(range(1, 5)))
    locality = dict(zip(sizes, map(float, distinct), strict=True))
    distance = st.sampled_from([1.0, 1.5, 2.0, 3.25, 7.0, math.inf])
    launches = {}
    for name in "123":
        objects = draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True))
        regional = draw(st.permutations(range(1, 5)))
        launches[name] = [use(o, float(regional[n]), draw(distance)) for n, o in enumerate(objects)]
    return (
        draw(st.integers(1, 9)),
        sizes,
        launches,
        draw(st.text("123", min_size=1, max_size=9)),
        locality,
    )


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["rlm", "glm", "rdm", "object-lru"])
@settings(deadline=None, max_examples=200)
@given(programs())
def test_decisions_are_the_papers_steps(scheme: str, program: Any) -> None:
    frames, sizes, launches, order, locality = program
    spec = "rdm(partial=no)" if scheme == "rdm" else scheme
    decider, _ = decide(spec, frames, sizes, launches, order, **locality)
    assert set(near(decider)) == by_the_paper(scheme, frames, sizes, launches, order, locality)


@settings(deadline=None, max_examples=100)
@given(programs(), st.sampled_from(["rest", "at once"]))
def test_partial_mapping_wastes_no_room_and_takes_nobodys(program: Any, partial: str) -> None:
    frames, sizes, launches, order, locality = program
    decider, memory = decide(f"rdm(partial={partial})", frames, sizes, launches, order, **locality)
    wanted = {u.object for u in launches[order[-1]]}
    held = decider.held
    assert sum(held.values()) <= frames
    # an object that went short gets the rest; at once, a later one may take its part away again
    if partial == "rest" and any(held[o] < sizes[o] for o in wanted):
        assert sum(held.values()) == frames
    for o in memory.objects:  # what is asked for is what is held
        far = [a for a in memory.actions if a.verb == "far" and a.object == o.name]
        assert all(a.first == held[o.name] * GEOMETRY.region for a in far)


def test_a_baseline_without_room_is_refused() -> None:
    with pytest.raises(PolicyError, match="near memory holds"):
        RunSpec("openmp-nn(bytes=24MB)", "v100-nvlink2", near="8MiB", placement="explicit").run(
            cache=False
        )
