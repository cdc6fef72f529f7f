"""The ledger of our own claims about tide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidegate.papers import paper
from tidegate.papers.ledger import Finding
from tidegate.papers.report import Exhibit
from tidegate.papers.results import Groups, Key
from tidegate.papers.tide.findings import all_figures, all_findings
from tidegate.papers.tide.grid import grid_of
from tidegate.papers.tide.setup import Setup


class Tide(paper.Paper[Setup]):
    """The targets T1 to T6 of the system ``tide``, developed and held back."""

    name = "tide"
    setup = Setup

    def grid(self, setup: Setup) -> Mapping[Key, object]:
        return grid_of(setup)

    def findings(self, setup: Setup, results: Groups) -> Iterable[Finding]:
        return all_findings(setup, results)

    def exhibits(self, setup: Setup, results: Groups) -> Iterable[Exhibit]:
        return all_figures(setup, results)

    def remarks(self, setup: Setup, results: Groups) -> Iterator[str]:
        yield (
            "Remote accesses are no pages moved. T3 and T4 are therefore about eviction alone, "
            "without remote mapping; time counts both."
        )


PAPER = Tide()
