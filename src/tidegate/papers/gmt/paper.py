"""The reproduction of GMT."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidegate.papers import paper
from tidegate.papers.gmt.figures import figures_of
from tidegate.papers.gmt.findings import findings_of
from tidegate.papers.gmt.grid import grid_of
from tidegate.papers.gmt.readings import READINGS
from tidegate.papers.gmt.setup import Setup
from tidegate.papers.gmt.sweeps import sweep_figures
from tidegate.papers.ledger import Finding
from tidegate.papers.report import Exhibit
from tidegate.papers.results import Groups, Key


class GMT(paper.Paper[Setup]):
    """Figures 4, 6 to 10 and 14, those of sensitivity from lists, and the claims G1 to G8, each at
    the size it was made for.
    """

    name = "gmt"
    setup = Setup
    readings = READINGS

    def grid(self, setup: Setup) -> Mapping[Key, object]:
        return grid_of(setup)

    def findings(self, setup: Setup, results: Groups) -> Iterable[Finding]:
        return findings_of(setup, results)

    def exhibits(self, setup: Setup, results: Groups) -> Iterable[Exhibit]:
        yield from figures_of({size: results[size] for size in setup.sizes})
        yield from sweep_figures(setup, results)

    def remarks(self, setup: Setup, results: Groups) -> Iterator[str]:
        if not setup.factor:
            both = len(setup.sizes) > 1
            beside = (
                "; the stated factor of 2, which contradicts them, is beside them" if both else ""
            )
            yield f"Sizes come from Table 2 and Figure 7 alone{beside}."
        if setup.as_published:
            yield (
                "Claims on one application, which the text explains by Table 2 and Figure 7, are "
                "judged at Table 2's sizes; means (G2, G7) and BFS's speed-up at the factor of 2 "
                "that Figures 8 and 10 state."
            )
        yield "The paper's means are geometric: only so do its nine speed-ups make 1.50."


PAPER = GMT()
