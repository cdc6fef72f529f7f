"""Open readings: which are drawn, what a variant is, and what share of them a claim holds under."""

from __future__ import annotations

import pytest

from tidegate.experiments.specification import RunSpec
from tidegate.papers.ledger import Claim, Finding, Verdict
from tidegate.papers.observuvm.paper import (
    DEPENDS,
    MOST_TOURNAMENTS,
    OPEN,
    PAPER,
    READINGS,
    specify,
)
from tidegate.papers.observuvm.setup import GRID, SYSTEMS, Setup
from tidegate.papers.readings import choose, distinct, run_variants, with_shares
from tidegate.policies.registries import eviction, placement, prefetch
from tidegate.workloads import workloads

pytestmark = pytest.mark.paper

STAND_INS = (("MM", "cyclic(bytes=16MiB)"), ("2DC", "stream(bytes=16MiB)"))


def test_the_default_comes_first_and_the_rest_is_drawn_without_repeats() -> None:
    drawn = choose(OPEN, 200)
    assert drawn[0] == {name: values[0] for name, values in OPEN.items()}
    assert len({tuple(r.items()) for r in drawn}) == len(drawn) == 200
    assert drawn == choose(OPEN, 200)
    assert choose(OPEN, 50) == drawn[:50]


def test_every_value_of_every_option_is_drawn_about_equally_often() -> None:
    drawn = choose(OPEN, 1024)
    for name, values in OPEN.items():
        for value in values:
            times = sum(r[name] == value for r in drawn)
            assert 0.8 < times * len(values) / len(drawn) < 1.2, (name, value)


def test_open_points_are_options_that_exist_and_begin_with_their_defaults() -> None:
    for point, values in OPEN.items():
        owner, _, option = point.partition(".")
        if point == "machine.near.utlb_faults":
            assert (RunSpec("cyclic").load_machine().near.utlb_faults or 0) == values[0]
        elif owner == "machine":
            assert RunSpec("cyclic").flat()[option] in (values[0], None)
        elif owner != "observe":
            kinds = (eviction, prefetch, placement, workloads)
            registry = next(kind for kind in kinds if owner in kind.names())
            assert registry.find(owner).options()[option].default == values[0], point


def test_the_first_reading_is_the_grid_itself() -> None:
    setup = Setup(given=STAND_INS, readings=1, scale=1 / 8)
    (grid,) = PAPER.variants(setup)
    assert set(grid) == {(a, s, GRID) for a in ("MM", "2DC") for s in SYSTEMS}
    for (application, system, _), variant in grid.items():
        ours = PAPER.readings.specification(variant, setup)
        asked = specify(setup, setup.applications[application], system)
        assert ours.run(cache=False).counts == asked.run(cache=False).counts, (application, system)


def test_readings_share_the_runs_that_do_not_depend_on_them() -> None:
    setup = Setup(given=STAND_INS, readings=1000)
    grids = PAPER.variants(setup)

    def apart_of(application: str) -> dict[str, int]:
        keys = {s: (application, s, GRID) for s in SYSTEMS}
        return {s: len({g[key] for g in grids if key in g}) for s, key in keys.items()}

    apart, convolution = apart_of("MM"), apart_of("2DC")
    assert sum(apart.values()) + sum(convolution.values()) == len(distinct(grids))
    assert convolution["uvm"] == 4 * apart["uvm"]  # as often as its open iterations
    assert apart["uvm"] == 8
    assert apart["acbm"] == apart["ea"] == apart["lru"] == 16
    assert 180 < apart["lfu"] <= 192 >= apart["cp"] > 180  # of 192
    assert apart["tm"] <= MOST_TOURNAMENTS
    assert set(DEPENDS) | {"uvm"} == set(SYSTEMS)


def test_an_applications_own_readings_matter_to_its_own_runs() -> None:
    setup = Setup(readings=200)
    grids = PAPER.variants(setup)
    options = {
        a: {k for g in grids for k, _ in g[a, "uvm", GRID].options} for a in setup.applications
    }
    assert options["GMV"] - options["MM"] == {"GMV.iterations"}
    variant = next(
        g["GMV", "uvm", GRID]
        for g in grids
        if ("GMV.iterations", 3) in g["GMV", "uvm", GRID].options
    )
    assert "iterations=3" in PAPER.readings.specification(variant, setup).workload


@pytest.mark.slow
def test_variants_are_run_once_and_then_fetched() -> None:
    setup = Setup(given=STAND_INS)
    reading = {name: values[0] for name, values in OPEN.items()}
    keys = [(a, s, GRID) for a in ("MM", "2DC") for s in ("uvm", "lfu")]
    wanted = [READINGS.variant(key, reading) for key in keys]
    specs = {variant: PAPER.readings.specification(variant, setup) for variant in wanted}
    seen: list[int] = []
    runs = run_variants(specs, workers=1, progress=seen.append)
    assert sum(seen) == len(wanted) == len(runs)
    again = run_variants(specs, workers=1)
    assert again == runs
    assert all(run.from_store for run in again.values())
    for variant, spec in specs.items():
        assert runs[variant].counts == spec.run(cache=False).counts


def test_a_share_counts_readings_that_hold_and_ties_apart() -> None:
    claim = Claim("O1", "winner", "", "")

    def finding(lfu: float) -> Finding:
        return claim.for_part("MM").winner("lru", {"lru": 1.0, "lfu": lfu})

    tried = [
        [finding(2.0)],
        [finding(2.0)],
        [finding(1.01)],
        [finding(0.5)],
        [claim.for_part("MM").unmeasured("not run")],
    ]
    (robust,) = with_shares([finding(2.0)], tried)
    assert (robust.verdict, robust.share, robust.tied, robust.readings) == (
        Verdict.HOLDS,
        0.5,
        0.25,
        4,
    )
    (unknown,) = with_shares([claim.for_part("other").exact(1, 1)], tried)
    assert unknown.share is None
