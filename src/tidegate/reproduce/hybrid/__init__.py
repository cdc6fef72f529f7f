"""SC'19: compiler-assisted hybrid implicit and explicit memory management, figure by figure and
claim by claim.

setup        what is run, and what can be varied;  grid: the runs and their ratios
figures      Figures 1, 2, 4, 5a and 6
inner_loop   cfd's example of Figure 3, decided without a run
edges        bfs with part of its edges accessed
findings     the claims
open_points  what the paper leaves open, and the share of its readings under which each claim holds
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tidegate.experiments.grid import run_grid
from tidegate.reproduce.hybrid.edges import edge_asks
from tidegate.reproduce.hybrid.figures import figures_of
from tidegate.reproduce.hybrid.findings import findings_of
from tidegate.reproduce.hybrid.grid import Grid
from tidegate.reproduce.hybrid.open_points import (
    OPEN,
    ROBUST_SCALE,
    ROBUST_SIZES,
    robust_findings,
    variants_of,
)
from tidegate.reproduce.hybrid.setup import Setup, check, grid_of
from tidegate.reproduce.ledger import Ledger, load_claims
from tidegate.reproduce.report import Reproduction

TITLE = "Compiler Assisted Hybrid Implicit and Explicit GPU Memory Management under Unified Address Space (SC'19)"

__all__ = ["TITLE", "Setup", "reproduce", "size"]


def size(setup: Setup) -> int:
    """How many runs it takes."""
    return (
        len(grid_of(setup))
        + len(edge_asks(setup))
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
    asks = grid_of(setup)
    runs = run_grid(asks.values(), workers=workers, cache=cache, progress=lambda ask: progress(1))
    of_edges = edge_asks(setup)
    edges = run_grid(
        of_edges.values(), workers=workers, cache=cache, progress=lambda ask: progress(1)
    )
    grid = Grid(dict(zip(asks, runs, strict=True)), dict(zip(of_edges, edges, strict=True)))
    findings = findings_of(grid)
    if setup.readings:
        findings = robust_findings(findings, setup, workers, cache, progress)
    ledger = Ledger(load_claims("hybrid"), tuple(findings))
    return Reproduction(
        "hybrid",
        TITLE,
        setup.describe(),
        ledger,
        tuple(figures_of(grid)),
        tuple(_told(setup, grid)),
    )


def _told(setup: Setup, grid: Grid) -> Iterator[str]:
    """What a reader should know before the figures."""
    yield f"The paper's set-up: {load_claims('hybrid').setup}."
    if not setup.as_published:
        yield "This set-up differs from the paper's, so its figures are shown for comparison only."
    if setup.scale != 1:
        yield f"Sizes and near memory are {setup.scale:g} of the paper's: ratios are kept. --scale 1 runs the paper's own."
    yield (
        "The programs are Tidegate's own, with the loop structure and objects of the originals. The paper does not say how "
        "often they loop: here as Rodinia runs them (srad 100, hotspot 2 iterations, cfd 100 of its 2000), and kmeans and "
        "louvain until they converge on their default input."
    )
    yield (
        "The host's own accesses between launches (kmeans moves its centres there, for one) are not simulated, and results "
        "are not copied back at the end under any policy."
    )
    yield (
        "Two readings of the baseline: one target data around the program (each object is copied once), and copies by the "
        "map clauses of each region. Its copies take the link's time and nothing else; other schemes' memory is managed, "
        "and what comes near for the first time is unmapped from the CPU."
    )
    yield from dict.fromkeys(note for run in grid.runs.values() for note in run.notes)
    if setup.readings:
        sizes = ", ".join(f"{s:g}" for s in ROBUST_SIZES)
        yield f"Open readings: combinations of {', '.join(OPEN)}, for {sizes} GB, at {ROBUST_SCALE:g} of all sizes."
