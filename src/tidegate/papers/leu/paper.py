"""The reproduction of statistical caching: every application under every eviction policy, and the
curves of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.experiments.settings import GpuModel
from tidegate.experiments.specification import RunSpec
from tidegate.papers import paper
from tidegate.papers.ledger import Finding
from tidegate.papers.leu.curves import Curves, curve_findings, curves_figure, curves_of
from tidegate.papers.leu.examples import ERRATUM, example_findings, examples_figure, stack_findings
from tidegate.papers.leu.gaps import Gaps, gap_figures
from tidegate.papers.leu.setup import BEST, SUITES, Application, Setup
from tidegate.papers.report import Exhibit
from tidegate.papers.results import Groups, Key
from tidegate.policies.interface.visibility import Samples
from tidegate.policies.registries import eviction

RUNS, CURVES = "runs", "curves"  # groups


@dataclass(frozen=True)
class CurvesSpec:
    """The specification of one application's curves, which are computed from its sequence."""

    spec: RunSpec

    def prepare(self) -> Any:
        return self.spec.prepare()

    def run(self, cache: bool = True) -> Curves:
        return curves_of(self.spec)


def grid_of(setup: Setup) -> dict[Key, Any]:
    """Return applications × policies, and each application's curves."""
    grid: dict[Key, Any] = {
        (at, CURVES, CURVES): CurvesSpec(specify(setup, at, BEST)) for at in setup.applications
    }
    return grid | {
        (at, policy, RUNS): specify(setup, at, policy)
        for at in setup.applications
        for policy in setup.evictions
    }


def specify(setup: Setup, at: Application, policy: str) -> RunSpec:
    """Return one run. One slot, so that all policies see the touches in one order, and whole
    regions, so that only eviction differs. All that counts regions is at the suite's scale.
    """
    machine, scale = SUITES[at.suite]
    sees = eviction.make(policy).sees
    observed = None
    if isinstance(sees, Samples):
        observed = max(1, round(sees.regions * scale * setup.scale))
    return RunSpec(
        setup.applications[at],
        machine,
        eviction=policy,
        prefetch="region",
        slots=1,
        oversubscribe=setup.oversubscribe,
        gpu=GpuModel(observed=observed, watched=observed, count_scale=scale * setup.scale),
    )


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
        yield from gap_figures(Gaps.from_runs(results[RUNS].runs, curves))

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
