"""The reproduction of SC'19."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidegate.papers import paper
from tidegate.papers.hybrid.figures import figures_of
from tidegate.papers.hybrid.findings import findings_of
from tidegate.papers.hybrid.grid import GRID, edges_of, grid_of
from tidegate.papers.hybrid.readings import READINGS
from tidegate.papers.hybrid.setup import Setup
from tidegate.papers.ledger import Finding
from tidegate.papers.report import Exhibit
from tidegate.papers.results import Groups, Key


class Hybrid(paper.Paper[Setup]):
    """Figures 1, 2, 4, 5, 6 and 7, edge density, and the claims H1 to H10."""

    name = "hybrid"
    setup = Setup
    readings = READINGS
    caches_traces = False  # programs loop a hundred times; their traces are large and quickly made

    def grid(self, setup: Setup) -> Mapping[Key, object]:
        return grid_of(setup) | edges_of(setup)

    def findings(self, setup: Setup, results: Groups) -> Iterable[Finding]:
        return findings_of(results)

    def exhibits(self, setup: Setup, results: Groups) -> Iterable[Exhibit]:
        return figures_of(results)

    def remarks(self, setup: Setup, results: Groups) -> Iterator[str]:
        if setup.scale != 1:
            yield (
                f"Sizes and near memory are {setup.scale:g} of the paper's: ratios are kept. "
                "--scale 1 runs the paper's own."
            )
        yield (
            "The programs are Tidegate's own, with the loop structure and objects of the "
            "originals. The paper does not say how often they loop: here as Rodinia runs them "
            "(srad 100, hotspot 2 iterations, cfd 100 of its 2000), and kmeans and louvain until "
            "they converge on their default input."
        )
        yield (
            "The host's own accesses between launches (kmeans moves its centres there, for one) "
            "are not simulated. The baselines copy results back at the end; managed memory has "
            "nothing to copy until the host reads it."
        )
        yield (
            "Two readings of the baseline: one target data around the program (each object is "
            "copied once), and copies by the map clauses of each region. Its copies take the "
            "link's time and nothing else; the memory of other schemes is managed, and what comes "
            "near for the first time is unmapped from the CPU."
        )
        yield from results[GRID].notes


PAPER = Hybrid()
