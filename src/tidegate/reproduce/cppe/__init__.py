"""CPPE (IPDPS'20): coordinated page prefetch and eviction, figure by figure and claim by claim.

setup        what is run, and what can be varied
figures      Figures 3, 7, 8 and 9, and the structures' sizes of VI-C
findings     the claims, from the grids at both levels
crossing     beyond the paper: its systems on ObservUVM's applications, and the reverse
open_points  what the paper leaves open, and the share of its readings under which each claim holds
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tidegate.reproduce.cppe.crossing import crossed_of, crossing_figure
from tidegate.reproduce.cppe.figures import figures_of
from tidegate.reproduce.cppe.findings import findings_of
from tidegate.reproduce.cppe.open_points import OPEN, robust_findings, variants_of
from tidegate.reproduce.cppe.setup import Setup, check, grid_of
from tidegate.reproduce.kept import run_kept
from tidegate.reproduce.ledger import Ledger, load_claims
from tidegate.reproduce.report import Reproduction
from tidegate.reproduce.results import Results

TITLE = "CPPE: Coordinated Page Prefetch and Eviction for Memory Oversubscription Management in GPUs (IPDPS'20)"

__all__ = ["TITLE", "Setup", "reproduce", "size"]


def size(setup: Setup) -> int:
    """How many runs it takes."""
    return (
        len(grid_of(setup))
        + len(crossed_of(setup))
        + (len(variants_of(setup)) if setup.readings else 0)
    )


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
    grid, crossed = grid_of(setup), crossed_of(setup)
    runs = run_kept({**grid, **crossed}, workers, cache, progress)
    levels = {
        level: Results({(a, s): runs[a, s, level] for a, s, at in grid if at == level})
        for level in setup.levels
    }
    findings = findings_of(levels)
    if setup.readings:
        findings = robust_findings(findings, setup, workers, cache, progress)
    exhibits = (*figures_of(levels), *crossing_figure({at: runs[at] for at in crossed}))
    return Reproduction(
        "cppe",
        TITLE,
        setup.describe(),
        Ledger(load_claims("cppe"), tuple(findings)),
        exhibits,
        tuple(_told(setup, levels)),
    )


def _told(setup: Setup, levels: Mapping[str, Results]) -> Iterator[str]:
    """What a reader should know before the figures."""
    yield f"The paper's set-up: {load_claims('cppe').setup}."
    if not setup.as_published:
        yield "This set-up differs from the paper's, so its figures are shown for comparison only."
    yield (
        "MVT and BIC crashed in the paper's baseline and are left out of its means; here they run, and the means are given "
        "without them, as there."
    )
    notes = (
        note for results in levels.values() for run in results.runs.values() for note in run.notes
    )
    yield from dict.fromkeys(notes)
    if setup.readings:
        yield f"Open readings: combinations of {', '.join(OPEN)}."
