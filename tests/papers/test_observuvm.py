"""ObservUVM's reproduction: the grid, the findings on runs made by hand, and all of it on tiny
stand-ins.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from papers.synthetic import APPLICATIONS, as_published, make_run, results
from tidegate.errors import TidegateError
from tidegate.papers.ledger import Finding, Ledger, Verdict, load_claims
from tidegate.papers.observuvm.findings import grid_findings, overheads
from tidegate.papers.observuvm.locality import locality_findings
from tidegate.papers.observuvm.paper import PAPER, grid_of, probe, specify
from tidegate.papers.observuvm.saturation import saturation_findings
from tidegate.papers.observuvm.setup import FIGURE_3, FIGURE_5, GRID, PROBED, SYSTEMS, Setup
from tidegate.papers.report import page_of, write_report
from tidegate.papers.results import Results
from tidegate.workloads.suites import GB, suite

pytestmark = pytest.mark.paper

STAND_INS = (
    ("MM", "matmul(bytes=24MiB)"),
    ("GMM", "cyclic(bytes=16MiB)"),
    ("2DC", "stencil(bytes=24MiB)"),
)
TINY = Setup(given=STAND_INS, scale=1 / 32)


def by_label(findings: list[Finding]) -> dict[str, Finding]:
    return {f.label: f for f in findings}


# What is run


def test_the_grid_is_fourteen_applications_under_nine_systems() -> None:
    grid = {(a, s): run for (a, s, group), run in grid_of(Setup()).items() if group == GRID}
    assert len(grid) == 14 * 9 == len(set(grid))
    assert {s for _, s in grid} == set(SYSTEMS)
    assert [a for a, s in grid if s == "uvm"] == [
        spec.partition("(")[0] for spec in suite("observuvm")
    ]
    assert all(run.oversubscribe == "50%" for run in grid.values())
    assert PAPER.size(Setup()) == 14 * 9 + 14 + len(PROBED)


def test_scale_scales_bytes_and_observed_regions() -> None:
    assert grid_of(Setup())["MM", "lru", GRID].gpu.observed is None  # the policies' own 100
    small = grid_of(Setup(scale=1 / 8))["MM", "lru", GRID]
    assert small.gpu.observed == 12
    assert small.workload == f"MM(bytes={round(10.1 * GB / 8)})"
    assert grid_of(Setup(observed=50, scale=1 / 8))["MM", "lru", GRID].gpu.observed == 6
    assert grid_of(Setup(observed=1, scale=1 / 8))["MM", "lru", GRID].gpu.observed == 1
    # V-D's 100
    assert (
        small.gpu.watched
        == grid_of(Setup(observed=50, scale=1 / 8))["MM", "lru", GRID].gpu.watched
        == 12
    )
    assert grid_of(Setup(observed=10))["MM", "lru", GRID].gpu.watched == 100


@pytest.mark.parametrize(
    "given",
    [
        {"scale": 0},
        {"observed": 0},
        {"samples": -1},
        {"oversubscribe": "-10%"},
        {"systems": ("lru",)},
    ],
)
def test_what_cannot_be_run_is_refused_at_once(given: dict[str, object]) -> None:
    with pytest.raises(TidegateError):
        Setup(**given)  # type: ignore[arg-type]


def test_recording_changes_nothing() -> None:
    plain = specify(TINY, "stencil(bytes=24MiB)", "uvm").run(cache=False)
    recorded = grid_of(TINY)["2DC", "uvm", FIGURE_5].run(cache=False)
    assert recorded.counts == plain.counts
    assert recorded.time == plain.time
    assert sum(recorded.facts["policy_report"]["touched"]) == plain.counts["evictions"]


# What is found


def test_every_claim_holds_on_a_grid_made_as_published() -> None:
    found = grid_findings(results(as_published()))
    assert [(f.label, f.ours, f.why) for f in found if f.verdict is not Verdict.HOLDS] == []
    assert len([f for f in found if f.claim == "O1"]) == 14
    assert len([f for f in found if f.claim == "O11"]) == 14


def test_findings_differ_where_the_runs_do_and_say_why() -> None:
    runs = as_published()
    runs["MM", "cp"] = make_run(400, evictions=100)
    runs["LU", "cp"] = make_run(runs["LU", "lfu"].time * 1.01)
    runs["GMM", "tm+"] = make_run(800, report={"threshold": 1, "verdicts": 40, "useful": 39})
    runs["SN", "lru"] = make_run(1050)
    runs["BFS", "tm++"] = make_run(1300)
    found = by_label(grid_findings(results(runs)))
    assert found["O1 MM"].verdict is Verdict.DIFFERS
    assert found["O1 MM"].why.startswith(
        "MM: lru takes 115 % more time than cp: 3.8 times the evictions"
    )
    assert found["O1 LU"].verdict is Verdict.TIE
    assert found["O11 GMM"].verdict is Verdict.DIFFERS
    assert "39 of 40 watched prefetches were used" in found["O11 GMM"].why
    assert found["O9 SN"].ours == "+5.0 %"
    assert found["O4 none slower"].verdict is Verdict.DIFFERS
    assert "BFS" in found["O4 none slower"].ours


def test_what_was_not_run_is_not_measured_and_never_raises() -> None:
    runs = {
        at: run
        for at, run in as_published().items()
        if at[0] not in ("MM", "GMM", "HEL") and at[1] != "acbm"
    }
    found = by_label(grid_findings(results(runs)))
    assert found["O1 MM"].why == "MM was not run under lru"
    assert found["O6 time"].verdict is found["O12 mean"].verdict is Verdict.NOT_MEASURED
    assert found["O1 LU"].verdict is Verdict.HOLDS
    nothing = grid_findings(results({}))
    assert {f.verdict for f in nothing} == {Verdict.NOT_MEASURED}
    assert {f.claim for f in nothing} == {f"O{i}" for i in (*range(1, 14), 16)}


def test_a_policy_better_than_all_three_is_mentioned() -> None:
    runs = as_published()
    runs["LU", "uvm"] = make_run(500, evictions=1000, faults=1000)
    assert by_label(grid_findings(results(runs)))["O1 LU"].ours.endswith("; uvm -48 %")


def test_overhead_is_divided_by_what_its_counts_cost() -> None:
    run = make_run(
        1000, overhead=0.05, pages_sampled=10, pages_home=10, decisions=100, notifications=5
    )
    whole, moving, telling = overheads(run)
    page = 65536 / 22
    cost = 10 * (10_000 + page) + 10 * (1500 + page), 100 * 1000 + 5 * 20_000
    assert whole == pytest.approx(0.05)
    assert moving / telling == pytest.approx(cost[0] / cost[1])
    assert moving + telling == pytest.approx(whole)


def test_locality_by_closed_form() -> None:
    half = [0] * 16 + [50] + [0] * 15 + [50]  # 50 regions with 16 of 32 pages, 50 with all
    whole = [0] * 32 + [100]
    runs = {
        ("A", "uvm"): make_run(report={"touched": half, "near": whole}),
        ("B", "uvm"): make_run(report={"touched": whole, "near": whole}),
    }
    regions, mean, migrated = locality_findings(Results(runs))
    assert (regions.number, mean.number, migrated.number) == (0.75, 0.75, 1.0)
    assert (regions.verdict, migrated.verdict) == (Verdict.DIFFERS, Verdict.HOLDS)
    assert "A 50 %" in regions.why
    assert locality_findings(Results({("A", "uvm"): make_run()}))[0].verdict is Verdict.NOT_MEASURED


def test_counters_saturate_as_in_figure_3() -> None:
    runs = {(p, FIGURE_3): probe(p).run() for p in PROBED}
    counted = {p: r.counts["notifications"] for (p, _), r in runs.items()}
    assert counted == {p: min(p, 256) for p in PROBED}
    found = saturation_findings(Results(runs))
    assert [f.verdict for f in found] == [Verdict.HOLDS, Verdict.HOLDS]
    short = {at: make_run(notifications=min(at[0], 100)) for at in runs}
    found = saturation_findings(Results(short))
    assert [f.verdict for f in found] == [Verdict.DIFFERS, Verdict.DIFFERS]


# All of it


@pytest.mark.slow
def test_a_tiny_reproduction_from_end_to_end(tmp_path: Path) -> None:
    seen: list[int] = []
    setup = dataclasses.replace(TINY, readings=2)
    done = PAPER.reproduce(setup, workers=1, progress=seen.append)
    assert sum(seen) == PAPER.size(setup)
    assert [e.name for e in done.exhibits] == [f"Figure {n}" for n in (3, 5, 9, 10, 11, 12, 13)]
    assert all(e.words and len(e.table) for e in done.exhibits)
    assert by_label(list(done.ledger.findings))["O1 MM"].readings == 2
    page = page_of([done])
    assert page == page_of([done])
    for i in range(1, 17):
        assert f'id="O{i}"' in page
    assert page.count("<svg") == 7
    written = write_report([done], tmp_path / "all")
    assert {p.suffix for p in written} == {".html", ".json", ".svg", ".csv"}
    assert not list((tmp_path / "all").glob(".*"))


@pytest.mark.slow
def test_the_same_on_any_number_of_workers() -> None:
    few = dataclasses.replace(TINY, given=STAND_INS[:2])
    one, two = (PAPER.reproduce(few, workers=n, cache=False).to_json() for n in (1, 2))
    assert one == two


def test_the_claims_are_those_the_findings_speak_of() -> None:
    claims = load_claims("observuvm")
    ledger = Ledger(claims, tuple(grid_findings(results(as_published()))))
    unmeasured = {f.claim for f in ledger.findings if f.verdict is Verdict.NOT_MEASURED}
    assert unmeasured == {"O14", "O15"}  # they have runs of their own
    assert set(APPLICATIONS) == {spec.partition("(")[0] for spec in suite("observuvm")}


def test_lists_make_the_figures_of_sensitivity_and_claims_stay_with_the_papers_value() -> None:
    setup = dataclasses.replace(TINY, oversubscribe=("30%", "50%"), observed=(100, 50), samples=2)
    assert (setup.main("oversubscribe"), setup.main("observed"), setup.main("samples")) == (
        "50%",
        100,
        2,
    )
    assert setup.swept() == {"oversubscribe": ("30%",), "observed": (50,)}
    grid = grid_of(setup)
    at = {key[2] for key in grid}
    assert {"oversubscribe 30%", "observed 50"} <= at
    application = next(iter(setup.applications))
    assert grid[application, "tm", "oversubscribe 30%"].oversubscribe == "30%"
    assert grid[application, "tm", GRID].oversubscribe == "50%"
    assert Setup(oversubscribe=("10%", "50%")).as_published
    assert not Setup(oversubscribe="30%").as_published


def test_the_spread_of_tournaments_is_shown() -> None:
    setup = dataclasses.replace(TINY, given=STAND_INS[:1], spread=2, systems=("uvm", "tm"))
    grid = grid_of(setup)
    assert grid["MM", "tm", "spread 2%"].load_machine().near.jitter == 0.02
    assert ("MM", "uvm", "spread 2%") not in grid
    done = PAPER.reproduce(setup, workers=1, cache=False)
    (spread,) = (e for e in done.exhibits if e.name == "Spread")
    (row,) = spread.table.to_dicts()
    assert row["least"] <= row["by default"] <= row["most"]
    assert spread.draw().axes
    assert dataclasses.replace(Setup(), spread=3).as_published


def test_elsewhere_findings_say_where() -> None:
    few = dataclasses.replace(TINY, given=STAND_INS[:1], oversubscribe="30%")
    done = PAPER.reproduce(few, workers=1, cache=False)
    assert {f.at for f in done.ledger.findings} == {"at 1/32"}
    assert "Judged at 1/32, not as published" in done.notes[1]
    assert Setup(oversubscribe="30%").at == "with --oversubscribe 30%"
    assert Setup.quick().at == "at 1/8"
    assert Setup().at == ""
