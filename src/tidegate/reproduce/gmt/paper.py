"""The reproduction of GMT."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidegate.reproduce import paper
from tidegate.reproduce.gmt.figures import figures_of
from tidegate.reproduce.gmt.findings import findings_of
from tidegate.reproduce.gmt.grid import grid_of
from tidegate.reproduce.gmt.readings import READINGS
from tidegate.reproduce.gmt.setup import Setup
from tidegate.reproduce.ledger import Finding
from tidegate.reproduce.report import Exhibit
from tidegate.reproduce.results import Groups, Key


class GMT(paper.Paper[Setup]):
    """Figures 4, 6, 7, 8, 9, 10 and 14, and the claims G1 to G8 at the first of the sizes."""

    name = "gmt"
    setup = Setup
    readings = READINGS
    one_worker_per_application = True  # graphs take longer to make than to run

    def grid(self, setup: Setup) -> Mapping[Key, object]:
        return grid_of(setup)

    def findings(self, setup: Setup, results: Groups) -> Iterable[Finding]:
        return findings_of(results.first)

    def exhibits(self, setup: Setup, results: Groups) -> Iterable[Exhibit]:
        return figures_of(results)

    def remarks(self, setup: Setup, results: Groups) -> Iterator[str]:
        if setup.factor is None:
            both = len(setup.sizes) > 1
            beside = (
                "; the stated factor of 2, which contradicts them, is beside them" if both else ""
            )
            yield f"Sizes come from Table 2 and Figure 7 alone{beside}."
        yield "The paper's means are geometric: only so do its nine speed-ups make 1.50."
        if setup.as_published:
            yield (
                "MultiVectorAdd is a knife-edge: with one page more in Tier-1, GMT-Reuse gains "
                "1.34, not 2.52 (docs/gmt.md)."
            )


PAPER = GMT()
