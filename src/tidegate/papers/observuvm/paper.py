"""The reproduction of ObservUVM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidegate.papers import paper
from tidegate.papers.ledger import Finding
from tidegate.papers.observuvm.figures import grid_figures
from tidegate.papers.observuvm.findings import grid_findings
from tidegate.papers.observuvm.grid import FIGURE_3, FIGURE_5, GRID, grid_of
from tidegate.papers.observuvm.locality import locality_figure, locality_findings
from tidegate.papers.observuvm.readings import READINGS
from tidegate.papers.observuvm.saturation import saturation_figure, saturation_findings
from tidegate.papers.observuvm.setup import Setup
from tidegate.papers.observuvm.sweeps import sweep_figures
from tidegate.papers.report import Exhibit
from tidegate.papers.results import Groups, Key, Results


class ObservUVM(paper.Paper[Setup]):
    """Figures 3, 5 and 9 to 13, and the claims O1 to O16."""

    name = "observuvm"
    setup = Setup
    readings = READINGS

    def grid(self, setup: Setup) -> Mapping[Key, object]:
        return grid_of(setup)

    def findings(self, setup: Setup, results: Groups) -> Iterable[Finding]:
        yield from grid_findings(results.get(GRID, Results({})))
        yield from locality_findings(results.get(FIGURE_5, Results({})))
        yield from saturation_findings(results.get(FIGURE_3, Results({})))

    def exhibits(self, setup: Setup, results: Groups) -> Iterable[Exhibit]:
        yield saturation_figure(results[FIGURE_3])
        yield locality_figure(results[FIGURE_5])
        yield from grid_figures(results[GRID])
        yield from sweep_figures(setup, results)

    def remarks(self, setup: Setup, results: Groups) -> Iterator[str]:
        kinds: dict[str, list[str]] = {}
        for (application, system), run in results[GRID].runs.items():
            if system == "uvm":
                kinds.setdefault(run.facts["provenance"], []).append(application)
        named = "; ".join(f"{kind} for {', '.join(names)}" for kind, names in kinds.items())
        yield f"Touches: {named}."
        yield from results[GRID].notes


PAPER = ObservUVM()
