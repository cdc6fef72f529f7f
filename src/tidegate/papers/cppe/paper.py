"""The reproduction of CPPE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidegate.papers import paper
from tidegate.papers.cppe.crossing import crossed_of, crossing_figures
from tidegate.papers.cppe.figures import figures_of
from tidegate.papers.cppe.findings import findings_of
from tidegate.papers.cppe.grid import grid_of
from tidegate.papers.cppe.readings import READINGS
from tidegate.papers.cppe.setup import Setup
from tidegate.papers.cppe.sweeps import sweep_figures
from tidegate.papers.ledger import Finding
from tidegate.papers.report import Exhibit
from tidegate.papers.results import Groups, Key


class CPPE(paper.Paper[Setup]):
    """Figures 3, 4, 7, 8 and 9, Tables III and IV, VI-C's structures, sensitivity from lists, the
    claims C1 to C7, and both papers crossed.
    """

    name = "cppe"
    setup = Setup
    readings = READINGS

    def grid(self, setup: Setup) -> Mapping[Key, object]:
        return grid_of(setup) | crossed_of(setup)

    def findings(self, setup: Setup, results: Groups) -> Iterable[Finding]:
        return findings_of(results)

    def exhibits(self, setup: Setup, results: Groups) -> Iterable[Exhibit]:
        yield from figures_of({level: results[level] for level in setup.levels})
        yield from sweep_figures(setup, results)
        yield from crossing_figures(results)

    def remarks(self, setup: Setup, results: Groups) -> Iterator[str]:
        yield (
            "MVT and BIC crashed in the paper's baseline and are left out of its means; here they "
            "run, and the means are given without them, as there."
        )
        yield from dict.fromkeys(n for level in setup.levels for n in results[level].notes)


PAPER = CPPE()
