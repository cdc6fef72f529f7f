"""SC'19's placement policies on programs small enough to decide by hand."""

from __future__ import annotations

import math

import pytest

from tidegate.compiler.plan import Plan, PlannedLaunch, PlannedUse
from tidegate.errors import PolicyError
from tidegate.experiments.ask import Ask
from tidegate.experiments.planning import Rehearsal
from tidegate.experiments.reproduce.hybrid.inner_loop import kept_by, locality_order
from tidegate.mechanism.geometry import Geometry
from tidegate.policies.placement.objects import ObjectPlacement
from tidegate.policies.registries import placement
from tidegate.trace.trace import lay_out

GEOMETRY = Geometry()


def use(name: str, locality: float = 1, distance: float = 1, density: float | None = 1.0) -> PlannedUse:
    return PlannedUse(name, locality, distance, density)


def decide(
    policy: str, frames: int, regions: dict[str, int], launches: dict[str, list[PlannedUse]], order: str, **gl: float
) -> tuple[ObjectPlacement, Rehearsal]:
    """The policy after launches named by the letters of ``order``."""
    plan = Plan(tuple(PlannedLaunch(name, tuple(uses)) for name, uses in launches.items()), gl)
    objects = lay_out({name: n * GEOMETRY.region for name, n in regions.items()}, GEOMETRY)
    memory = Rehearsal(objects, GEOMETRY, frames, plan)
    decider = placement.make(policy)
    assert isinstance(decider, ObjectPlacement)
    decider.attach(memory)  # type: ignore[arg-type]
    decider.start()
    for n, memory.launch in enumerate(order):
        memory.asked = []
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


def test_rlm_may_remember_priorities() -> None:
    launches = {"1": [use("a", 5)], "2": [use("b", 1)]}
    sizes = {"a": 2, "b": 2}
    assert near(decide("rlm", 2, sizes, launches, "12")[0]) == {"b": 2}
    assert near(decide("rlm(remember=true)", 2, sizes, launches, "12")[0]) == {"a": 2}


def test_glm_never_gives_up_what_the_program_accesses_most() -> None:
    launches = {"1": [use("a")], "2": [use("b")]}
    sizes = {"a": 2, "b": 2}
    assert near(decide("glm", 2, sizes, launches, "1212", a=2, b=1)[0]) == {"a": 2}
    assert near(decide("glm", 2, sizes, launches, "1212", a=1, b=2)[0]) == {"b": 2}


def test_nothing_is_replaced_unless_that_makes_room_enough() -> None:
    launches = {"1": [use("a", 1), use("b", 2)], "2": [use("c", 3)]}
    decider, _ = decide("glm", 4, {"a": 1, "b": 3, "c": 3}, launches, "12", a=1, b=4, c=2)
    assert near(decider) == {"a": 1, "b": 3}  # a alone would have given way, and one region is not three


def test_object_lru_keeps_the_last_and_no_launch_pushes_its_own_objects_out() -> None:
    launches = {"1": [use("a"), use("b")], "2": [use("c")]}
    assert near(decide("object-lru", 2, {"a": 2, "b": 2, "c": 2}, launches, "1")[0]) == {"a": 2}
    assert near(decide("object-lru", 2, {"a": 2, "b": 2, "c": 2}, launches, "12")[0]) == {"c": 2}


def test_rdm_counts_launches_and_keeps_what_comes_back_first() -> None:
    launches = {"1": [use("a", distance=2)], "2": [use("b", distance=4)], "3": [use("b", distance=math.inf)]}
    decider, _ = decide("rdm(partial=no)", 2, {"a": 2, "b": 2}, launches, "12")
    assert near(decider) == {"a": 2}  # a comes back at 3, b at 6
    assert (decider.clock, decider.next_use) == (2, {"a": 3, "b": 6})  # type: ignore[attr-defined]


@pytest.mark.parametrize(("a", "b", "kept"), [(1, 2, "b"), (2, 1, "a"), (1, 1, "a")])
def test_rdm_breaks_ties_by_global_locality(a: float, b: float, kept: str) -> None:
    launches = {"1": [use("a", distance=2)], "2": [use("b", distance=1)]}
    assert near(decide("rdm(partial=no)", 2, {"a": 2, "b": 2}, launches, "12", a=a, b=b)[0]) == {kept: 2}


@pytest.mark.parametrize(("partial", "held"), [("no", {"a": 2, "c": 1}), ("rest", {"a": 2, "b": 1, "c": 1}),
                                               ("at once", {"a": 2, "b": 2})])  # fmt: skip
def test_partial_mapping(partial: str, held: dict[str, int]) -> None:
    launches = {"1": [use("a", distance=1), use("b", distance=2), use("c", distance=3)]}
    decider, memory = decide(f"rdm(partial={partial})", 4, {"a": 2, "b": 5, "c": 1}, launches, "1")
    assert near(decider) == held
    far = {a.object: a.first // GEOMETRY.region for a in memory.asked if a.verb == "far"}
    assert far == {name: held.get(name, 0) for name, size in {"a": 2, "b": 5, "c": 1}.items() if held.get(name, 0) < size}


@pytest.mark.parametrize(("density", "verbs"), [(0.49, []), (0.5, ["prefetch"]), (None, ["prefetch"])])
def test_only_what_is_used_densely_is_prefetched(density: float | None, verbs: list[str]) -> None:
    _, memory = decide("rdm", 2, {"a": 2}, {"1": [use("a", density=density)]}, "1")
    assert [a.verb for a in memory.asked] == verbs


def test_what_has_no_room_is_used_remotely_and_moves_nothing() -> None:
    run = Ask("openmp-nn(bytes=24MB)", "v100-nvlink2", "rdm", near="8MiB", placement="rdm(partial=no)").answer(cache=False)
    # locations (8 of 12 bytes) are first by global locality and do not fit; distances, 8 MB, do
    assert run.counts["pages_in"] * 65536 == pytest.approx(8e6, rel=0.02)
    assert run.counts["remote_bytes"] == pytest.approx(16e6, rel=0.02)
    assert run.counts["evictions"] == run.counts["faults"] == 0


def test_baselines_copy_once_or_at_each_launch() -> None:
    ask = {"machine": "v100-nvlink2", "near": "64MiB", "dirty_only": True}
    once = Ask("openmp-hotspot(bytes=24MB, steps=4)", placement="explicit", **ask).answer(cache=False)  # type: ignore[arg-type]
    each = Ask("openmp-hotspot(bytes=24MB, steps=4)", placement="explicit(copies=launch)", **ask).answer(cache=False)  # type: ignore[arg-type]
    assert once.counts["pages_in"] * 65536 == pytest.approx(24e6, rel=0.02)
    # power and the source, 8 MB each, come again with each later launch; the source was the result before: it goes out first
    assert each.counts["pages_in"] * 65536 == pytest.approx(24e6 + 3 * 24e6, rel=0.1)
    assert each.counts["pages_written_back"] > 0 == once.counts["pages_written_back"]


def test_a_baseline_without_room_is_refused() -> None:
    with pytest.raises(PolicyError, match="near memory holds"):
        Ask("openmp-nn(bytes=24MB)", "v100-nvlink2", near="8MiB", placement="explicit").answer(cache=False)
