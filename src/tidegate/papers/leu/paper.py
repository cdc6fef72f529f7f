"""The reproduction of statistical caching."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidegate.papers import paper
from tidegate.papers.ledger import Finding
from tidegate.papers.leu.curves import Curves, curve_findings, curves_figure
from tidegate.papers.leu.examples import ERRATUM, example_findings, examples_figure, stack_findings
from tidegate.papers.leu.gaps import Gaps, gap_figures
from tidegate.papers.leu.grid import CURVES, RUNS, grid_of
from tidegate.papers.leu.setup import Application, Setup
from tidegate.papers.report import Exhibit
from tidegate.papers.results import Groups, Key


class LEU(paper.Paper[Setup]):
    """Figures 1 and 3, the claims L1 to L5, and the gap of every eviction policy to Belady."""

    name = "leu"
    setup = Setup

    def grid(self, setup: Setup) -> Mapping[Key, object]:
        return grid_of(setup)

    def findings(self, setup: Setup, results: Groups) -> Iterable[Finding]:
        yield from example_findings()
        yield from stack_findings(setup.sequences)
        yield from curve_findings(_curves(results))

    def exhibits(self, setup: Setup, results: Groups) -> Iterable[Exhibit]:
        curves = _curves(results)
        yield examples_figure()
        yield curves_figure(curves)
        yield from gap_figures(Gaps.of(results[RUNS].runs, curves))

    def notes(self, setup: Setup, results: Groups) -> Iterator[str]:
        yield (
            "A position paper: it has no measurements of LEU. What is measured here is measured "
            "for the first time."
        )
        yield (
            "Exact LEU and OSL know the distributions of the very sequence they are used on. The "
            "policy leu learns as it goes: what a system could have."
        )
        yield f"L2 is judged by its order. {ERRATUM}"
        yield (
            "L5 is claimed for one trace, which is not here. It is judged on the mean of all "
            "applications at each size, not on every size of every application."
        )
        if not setup.as_published:
            yield "This set-up differs from the default one, whose figures are in docs/leu.md."


def _curves(results: Groups) -> dict[Application, Curves]:
    return {at: curves for (at, _), curves in results[CURVES].runs.items()}  # type: ignore[misc]


PAPER = LEU()
