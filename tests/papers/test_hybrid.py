"""SC'19's findings and figures on runs made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from papers.synthetic import make_run
from tidegate.errors import TidegateError
from tidegate.experiments.runs import Run
from tidegate.machine.machine import load_machine
from tidegate.papers.hybrid.figures import figures_of
from tidegate.papers.hybrid.findings import LIKELY, MIXED, PUBLISHED, findings_of
from tidegate.papers.hybrid.grid import EDGES, GRID, SizedApplication, edges_of, grid_of, specify
from tidegate.papers.hybrid.paper import OPEN, PAPER, READINGS, reduced
from tidegate.papers.hybrid.setup import (
    APPLICATIONS,
    BASELINE,
    MACHINE,
    MAPPED_ONCE,
    NEAR,
    SCHEMES,
    Setup,
)
from tidegate.papers.ledger import Finding, Verdict
from tidegate.papers.results import Groups, Key
from tidegate.workloads import suites

pytestmark = pytest.mark.paper

GB = 10**9
OUT = 1000.0  # UM's time where not everything fits


def run(time: float, gigabytes: float = 0.0) -> Run:
    """A run that moves so much, of a program of 1 GB."""
    pages = round(gigabytes * GB / 65536)
    made = make_run(time, pages_in=pages, pages_written_back=0, remote_bytes=0)
    return replace(made, facts={**made.facts, "footprint_bytes": GB})


FIT = (309.0, 1.15 * 240 / 1.19)  # UM's time where all fits: seven applications', and miniVite's


def as_published() -> dict[Key, Run]:
    """A grid in which every claim holds: one size that fits, 9 GB, and one that does not, 19 GB."""
    runs: dict[Key, Run] = {}
    for a in APPLICATIONS:
        fit = {
            "um": FIT[a == "louvain"],
            "host": 1.15 * 240,
            "um-pf": 200.0,
            "rdm": 100.0,
            **dict.fromkeys(("lru", "rlm", "glm"), 100.0),
        }
        fit[BASELINE] = 240.0 if a in MIXED else 100.0
        larger = {"um": OUT, "um-pf": 1500.0, **{s: OUT / gain for s, gain in PUBLISHED.items()}}
        larger |= {"host": OUT / 8.2, "lru": OUT / 8.5}
        for times in (fit, larger):
            whole = times["rdm"] * 7.6 / 6.9
            times |= {"rdm whole": whole, "rdm implicit": 1.5 * whole, "rdm explicit": 1.3 * whole}
        moved = {BASELINE: 10.0, "um": 1.0, "um-pf": 5.0}
        for gb, times in ((9.0, fit), (19.0, larger)):
            for s, time in times.items():
                runs[SizedApplication(a, gb), s, GRID] = run(time, moved.get(s, 1.0))
    for share, time in ((0.0, 29.0), (0.5, 150.0), (1.0, 303.0)):
        runs[share, "implicit", EDGES] = run(time)
        runs[share, "explicit", EDGES] = run(100.0)
    return runs


def found(runs: dict[Key, Run]) -> dict[str, Finding]:
    return {f.label: f for f in findings_of(Groups.from_runs(runs))}


def changed(
    runs: dict[Key, Run],
    scheme: str,
    time: float,
    size: float,
    application: str | None = None,
    moved: float = 1.0,
) -> dict[Key, Run]:
    """The grid with another time for a scheme, of one application or all."""
    names = APPLICATIONS if application is None else (application,)
    return runs | {(SizedApplication(a, size), scheme, GRID): run(time, moved) for a in names}


def test_a_grid_as_published_holds_everywhere() -> None:
    verdicts = {label: f.verdict for label, f in found(as_published()).items()}
    assert verdicts == dict.fromkeys(verdicts, Verdict.HOLDS)
    assert {label.split()[0] for label in verdicts} == {f"H{n}" for n in range(1, 11)}


@pytest.mark.parametrize(
    ("label", "change"),
    [
        ("H1 rdm", ("rdm", OUT, 19.0)),
        ("H1 host", ("host", OUT, 19.0)),
        ("H2 rdm > glm", ("rdm", OUT / 10, 19.0)),
        ("H2 rlm > um", ("rlm", 2 * OUT, 19.0)),
        ("H2 host > rlm", ("rlm", OUT / 16, 19.0)),
        ("H2 nn", ("um", OUT, 19.0, "nn", 1.6)),
        ("H3", ("baseline", 100.0, 9.0)),
        ("H3 others", ("baseline", 120.0, 9.0, "srad", 10.0)),
        ("H4 kmeans", ("baseline", 240.0, 9.0, "kmeans", 1.0)),
        ("H5", ("rdm", 300.0, 9.0)),
        ("H5 mixing", ("rdm explicit", 1.0, 9.0)),
        ("H5 partial", ("rdm whole", 100.0, 9.0)),
        ("H8 host over baseline", ("host", 800.0, 9.0)),
        ("H8 host over um", ("um", 100.0, 9.0)),
        ("H9 fits", ("um-pf", 400.0, 9.0)),
        ("H9 host > um", ("um", 10.0, 19.0)),
        ("H9 host > um-pf", ("um-pf", 10.0, 19.0)),
        ("H9 traffic", ("um-pf", 1500.0, 19.0, "louvain", 0.5)),
        ("H10", ("rdm", OUT, 19.0, "louvain")),
    ],
)
def test_each_finding_notices_what_it_is_about(label: str, change: tuple[Any, ...]) -> None:
    finding = found(changed(as_published(), *change))[label]
    assert finding.verdict is Verdict.DIFFERS
    assert finding.why


def test_what_differs_has_its_likely_cause() -> None:
    findings = found(changed(as_published(), "host", OUT, 19.0))
    assert (
        "kernels here take nothing but bandwidth, so what is used over" in findings["H1 host"].why
    )
    assert (
        "RDM gains 4.4 to 8.0 at 25 GB"
        in found(changed(as_published(), "rdm", OUT, 19.0))["H1 rdm"].why
    )
    assert not findings["H1 rdm"].why  # it holds
    assert {
        key for key in LIKELY if not any(f"{label} ".startswith(key) for label in findings)
    } == set()


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_edge_density_notices_its_ends(share: float) -> None:
    other = as_published() | {(share, "implicit", EDGES): run(150.0 if share else 80.0)}
    assert found(other)[f"H7 {share:.0%} accessed"].verdict is Verdict.DIFFERS


def test_what_was_not_run_is_not_measured_and_h6_needs_no_run() -> None:
    findings = found({})
    assert {f.verdict for f in findings.values() if f.claim != "H6"} == {Verdict.NOT_MEASURED}
    assert {f.verdict for f in findings.values() if f.claim == "H6"} == {Verdict.HOLDS}


# Figures


def test_figures_show_the_runs() -> None:
    shown = {e.name: e for e in figures_of(Groups.from_runs(as_published()))}
    assert list(shown) == [
        "Figure 1",
        "Figure 2",
        "Figure 4",
        "Figure 5a",
        "Figure 5b",
        "Figure 6",
        "Edge density",
    ]
    assert all(isinstance(e.draw(), Figure) and e.words for e in shown.values())
    first = shown["Figure 1"].table
    assert first["application"].to_list() == ["louvain"] * 2
    assert first["um"].to_list() == pytest.approx([FIT[1] / 1e9, 1000e-9])
    assert first["baseline"].to_list() == [240e-9, None]  # it works where all fits only
    assert any("1.15 times" in note for note in shown["Figure 1"].notes)
    assert not [name for name in shown["Figure 2"].table.columns if "_" in name]  # names for people
    assert len(shown["Figure 4"].table) == 2 * len(APPLICATIONS)
    assert shown["Figure 5a"].table["over baseline"].to_list() == pytest.approx(
        [0.1] * 8, rel=0.001
    )
    gains = dict(zip(*shown["Figure 6"].table.select("part", "all"), strict=True))
    assert gains["rdm"] == pytest.approx(((3.09**7 * FIT[1] / 100) ** (1 / 8) * 18.7) ** 0.5)
    assert gains["rdm"] / gains["rdm whole"] == pytest.approx(7.6 / 6.9)
    assert shown["Edge density"].table["implicit over explicit"].to_list() == pytest.approx(
        [0.29, 1.5, 3.03]
    )


def test_a_figure_of_one_application_has_room_for_its_legend() -> None:
    figure = next(
        e for e in figures_of(Groups.from_runs(as_published())) if e.name == "Figure 1"
    ).draw()
    FigureCanvasAgg(figure).draw()
    whole, legend = figure.bbox, figure.legends[0].get_window_extent()
    assert whole.x0 <= legend.x0
    assert legend.x1 <= whole.x1


def test_figures_without_runs_are_left_out() -> None:
    assert list(figures_of(Groups())) == []
    only = {(SizedApplication("nn", 19.0), s, GRID): run(1.0) for s in SCHEMES}
    names = [e.name for e in figures_of(Groups.from_runs(only))]
    assert names == ["Figure 4", "Figure 5b", "Figure 6"]


def test_several_large_sizes_of_bfs_are_figure_7() -> None:
    runs = {
        (SizedApplication("bfs", gb), s, GRID): run(gb)
        for gb in (25.0, 48.0, 112.0)
        for s in SCHEMES
    }
    shown = {e.name: e for e in figures_of(Groups.from_runs(runs))}
    assert shown["Figure 7"].table["GB"].to_list() == [48.0, 112.0]
    assert isinstance(shown["Figure 7"].draw(), Figure)


# What is run


def test_baselines_are_run_where_everything_fits_only() -> None:
    grid = grid_of(Setup(applications=("nn", "bfs")))
    assert {w.gb for w, s, _ in grid if s == "baseline"} == {4, 9, 14}
    assert {w.gb for w, _, _ in grid if w.application == "bfs"} == {4, 9, 14, 19, 25, 31, 112}


def test_the_baseline_maps_as_each_programs_directives_do() -> None:
    grid = grid_of(Setup())
    copies = {w.application: spec.placement for (w, s, _), spec in grid.items() if s == BASELINE}
    once = {a for a, placement in copies.items() if placement == "explicit"}
    assert once == set(MAPPED_ONCE)
    assert {copies[a] for a in set(APPLICATIONS) - once} == {"explicit(copies=launch)"}


def test_scale_keeps_ratios() -> None:
    for scale in (1, 1 / 32):
        spec = specify(Setup(scale=scale), SizedApplication("cfd", 1.5 * NEAR), "rdm")
        assert spec.bytes == pytest.approx(1.5 * float(spec.near or 0), rel=0.005)


def test_gigabytes_are_those_of_the_other_papers() -> None:
    assert specify(Setup(scale=1), SizedApplication("cfd", 9), "rdm").bytes == 9 * suites.GB
    assert load_machine(MACHINE).near.bytes / suites.GB == pytest.approx(NEAR, abs=0.05)


def test_edges_are_tried_both_ways_with_bfs_only() -> None:
    specs = edges_of(Setup.quick())
    assert {way for _, way, _ in specs} == {"implicit", "explicit"}
    assert "connected=0.25" in str(specs[0.25, "implicit", EDGES].workload)
    assert edges_of(Setup(applications=("nn",))) == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"scale": 0},
        {"fitting": (17,)},
        {"larger": (9,)},
        {"applications": ("lud",)},
        {"loops": "forever"},
        {"unmap": -1},
        {"threshold": -1},
        {"applications": ()},
    ],
)
def test_bad_setups_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(TidegateError):
        Setup(**wrong)


# Readings


def test_the_default_reading_is_the_grid_itself() -> None:
    setup = Setup(applications=("cfd",), readings=2)
    default, other = PAPER.variants(setup)
    plain = grid_of(reduced(setup))
    assert set(default) == set(plain)
    for key, variant in default.items():
        ours, theirs = (
            spec.prepare() for spec in (READINGS.specification(variant, reduced(setup)), plain[key])
        )
        assert ours.machine.constants() == theirs.machine.constants(), key
        assert ours.trace.identity() == theirs.trace.identity()
        assert ours.placement.settings() == theirs.placement.settings()
        assert ours.dirty_only == theirs.dirty_only
    assert other != default


def test_every_open_point_changes_a_run() -> None:
    setup = Setup(applications=("cfd", "louvain"), readings=1)
    (default,) = PAPER.variants(setup)
    touched = set()
    for (_, scheme, _), variant in default.items():
        own = dict(variant.options)
        before = READINGS.specification(variant, reduced(setup))
        for name in own:
            other = replace(
                variant, options=tuple((k, OPEN[k][1] if k == name else v) for k, v in own.items())
            )
            if READINGS.specification(other, reduced(setup)) != before:
                touched.add(name)
        assert "program.loops" in own, scheme
    assert touched == set(OPEN)
