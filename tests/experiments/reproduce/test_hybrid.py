"""SC'19's findings on runs made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.reproduce.synthetic import make_run
from tidegate.errors import TidegateError
from tidegate.experiments.ledger import Finding, Verdict
from tidegate.experiments.reproduce.hybrid.findings import PUBLISHED, findings_of
from tidegate.experiments.reproduce.hybrid.grid import Grid
from tidegate.experiments.reproduce.hybrid.setup import Setup, grid_of


def found(runs: dict[Any, Any]) -> dict[str, Finding]:
    return {f.label: f for f in findings_of(Grid(runs))}


def test_published_gains_hold_and_others_differ() -> None:
    runs = {("cfd", 19.0, "um"): make_run(1000.0)}
    runs |= {("cfd", 19.0, s): make_run(1000.0 / gain) for s, gain in PUBLISHED.items()}
    assert {found(runs)[f"H1 {s}"].verdict for s in PUBLISHED} == {Verdict.HOLDS}
    runs["cfd", 19.0, "rdm"] = make_run(1000.0)
    assert found(runs)["H1 rdm"].verdict is Verdict.DIFFERS
    assert found(runs)["H1 rdm"].why


def test_what_was_not_run_is_not_measured_and_h6_needs_no_run() -> None:
    findings = found({})
    assert {f.verdict for f in findings.values() if f.claim != "H6"} == {Verdict.NOT_MEASURED}
    assert {f.verdict for f in findings.values() if f.claim == "H6"} == {Verdict.HOLDS}


def test_baselines_are_run_where_everything_fits_only() -> None:
    grid = grid_of(Setup(applications=("nn", "bfs")))
    assert {size for _, size, s in grid if s == "baseline"} == {4, 9, 14}
    assert {size for a, size, _ in grid if a == "bfs"} == {4, 9, 14, 19, 25, 31, 112}


@pytest.mark.parametrize("wrong", [{"scale": 0}, {"fitting": (17,)}, {"larger": (9,)}, {"applications": ("lud",)}])
def test_bad_setups_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(TidegateError):
        Setup(**wrong)
