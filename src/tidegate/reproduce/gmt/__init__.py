"""GMT (ASPLOS'24): GPU, host and SSD as three tiers, figure by figure and claim by claim.

setup        what is run, and what can be varied
figures      Figures 4, 6, 7, 8, 9, 10 and 14
findings     the claims
open_points  what the paper leaves open, and the share of its readings under which each claim holds
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from tidegate.experiments.grid import spread
from tidegate.experiments.runs import Run
from tidegate.reproduce.gmt.figures import figures_of
from tidegate.reproduce.gmt.findings import findings_of
from tidegate.reproduce.gmt.open_points import OPEN, robust_findings, variants_of
from tidegate.reproduce.gmt.setup import Key, Setup, check, grid_of
from tidegate.reproduce.ledger import Ledger, load_claims
from tidegate.reproduce.report import Reproduction
from tidegate.reproduce.results import Results

TITLE = "GMT: GPU Orchestrated Memory Tiering for the Big Data Era (ASPLOS'24)"

__all__ = ["TITLE", "Setup", "reproduce", "size"]


def size(setup: Setup) -> int:
    """How many runs it takes."""
    return len(grid_of(setup)) + (len(variants_of(setup)) if setup.readings else 0)


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
    each = len(setup.sizes) * len(setup.systems)
    work = partial(_application, setup=setup, cache=cache)
    parts = spread(
        work, list(setup.applications), workers=workers, progress=lambda application: progress(each)
    )
    runs = {key: run for part in parts for key, run in part.items()}
    sizes = {
        at: Results({(a, s): run for (a, s, size), run in runs.items() if size == at})
        for at in setup.sizes
    }
    findings = findings_of(sizes[setup.sizes[0]])
    if setup.readings:
        findings = robust_findings(findings, setup, workers, cache, progress)
    ledger = Ledger(load_claims("gmt"), tuple(findings))
    return Reproduction(
        "gmt", TITLE, setup.describe(), ledger, tuple(figures_of(sizes)), tuple(_told(setup))
    )


def _application(application: str, setup: Setup, cache: bool) -> dict[Key, Run]:
    """All runs of one application, so that its trace is made once."""
    return {key: ask.answer(cache) for key, ask in grid_of(setup).items() if key[0] == application}


def _told(setup: Setup) -> Iterator[str]:
    """What a reader should know before the figures."""
    yield f"The paper's set-up: {load_claims('gmt').setup}."
    if not setup.as_published:
        yield "This set-up differs from the paper's, so its figures are shown for comparison only."
    if setup.factor is None:
        beside = (
            "; the stated factor of 2, which contradicts them, is beside them"
            if len(setup.sizes) > 1
            else ""
        )
        yield f"Sizes come from Table 2 and Figure 7 alone{beside}."
    yield "The paper's means are geometric: only so do its nine speed-ups make 1.50."
    if setup.as_published:
        yield "MultiVectorAdd is a knife-edge: one page more in Tier-1, and GMT-Reuse gains 1.34, not 2.52 (docs/gmt.md)."
    if setup.readings:
        yield f"Open readings: combinations of {', '.join(OPEN)}."
