"""ObservUVM (ISCA'26): observability-aided GPU memory oversubscription, figure by figure and claim
by claim.

setup        what is run, and what can be varied
figures      Figures 9 to 13;  saturation: Figure 3;  locality: Figure 5
findings     the claims, from the grid
open_points  what the paper leaves open, and the share of its readings under which each claim holds
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tidegate.experiments.specification import RunSpec
from tidegate.reproduce.kept import run_kept
from tidegate.reproduce.ledger import Ledger, load_claims
from tidegate.reproduce.observuvm.figures import grid_figures
from tidegate.reproduce.observuvm.findings import findings_of
from tidegate.reproduce.observuvm.locality import locality_figure, locality_findings
from tidegate.reproduce.observuvm.open_points import (
    OPEN,
    TOURNAMENTS,
    readings_of,
    robust_findings,
    variants_of,
)
from tidegate.reproduce.observuvm.saturation import saturation_figure, saturation_findings
from tidegate.reproduce.observuvm.setup import Setup, check, counted_of, grid_of, used_of
from tidegate.reproduce.report import Reproduction
from tidegate.reproduce.results import Results

TITLE = "ObservUVM: Observability-aided GPU Memory Oversubscription (ISCA'26)"

__all__ = ["TITLE", "Setup", "reproduce", "size"]


def size(setup: Setup) -> int:
    """How many runs it takes."""
    robust = len(variants_of(setup.at(setup.robust_scale))) if setup.readings else 0
    return len(grid_of(setup)) + len(used_of(setup)) + len(counted_of()) + robust


def reproduce(
    setup: Setup | None = None,
    *,
    workers: int | None = None,
    cache: bool = True,
    progress: Callable[[int], None] = lambda runs: None,
) -> Reproduction:
    """Run everything (or fetch it from the store) and put figures and ledger together."""
    setup = setup or Setup()
    check(setup)
    grid, used, counted = _run(setup, workers, cache, progress)
    results = Results(grid)
    findings = findings_of(results) + locality_findings(used) + saturation_findings(counted)
    if setup.readings:
        findings = robust_findings(findings, setup, workers, cache, progress)
    exhibits = (saturation_figure(counted), locality_figure(used), *grid_figures(results))
    claims = load_claims("observuvm")
    return Reproduction(
        "observuvm",
        TITLE,
        setup.describe(),
        Ledger(claims, tuple(findings)),
        exhibits,
        _notes(setup, results),
    )


def _run(
    setup: Setup, workers: int | None, cache: bool, progress: Callable[[int], None]
) -> tuple[Any, Any, Any]:
    """All runs in one grid."""
    grid, used, counted = grid_of(setup), used_of(setup), counted_of()
    asks: dict[Any, RunSpec] = {**grid, **used, **counted}
    runs = run_kept(asks, workers, cache, progress)
    return (
        {at: runs[at] for at in grid},
        {a: runs[a] for a in used},
        {p: runs[p] for p in counted},
    )


def _notes(setup: Setup, results: Results) -> tuple[str, ...]:
    """What a reader should know before the figures."""
    return tuple(_told(setup, results.runs))


def _told(setup: Setup, runs: Any) -> Iterator[str]:
    yield f"The paper's set-up: {load_claims('observuvm').setup}."
    if (
        setup.oversubscribe not in ("50%", 0.5)
        or setup.scale != 1
        or setup.observed != 100
        or setup.samples
    ):
        yield "This set-up differs from the paper's, so its figures are shown for comparison only."
    how: dict[str, list[str]] = {}
    for (application, system), run in runs.items():
        if system == "uvm":
            how.setdefault(run.facts["provenance"], []).append(application)
    yield (
        "Touches: "
        + "; ".join(f"{kind} for {', '.join(names)}" for kind, names in how.items())
        + "."
    )
    yield from dict.fromkeys(note for run in runs.values() for note in run.notes)
    if setup.readings:
        count = len(readings_of(setup.at(setup.robust_scale)))
        yield (
            f"Open readings: {count} combinations of {', '.join(OPEN)}, at {setup.robust_scale:g} of the paper's sizes; "
            f"tournaments in the first {min(count, TOURNAMENTS)} of them. Small sizes change some results."
        )
