"""What is run: every application under every eviction policy, and the curves of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidegate.experiments.settings import GpuModel
from tidegate.experiments.specification import RunSpec
from tidegate.papers.leu.curves import Curves, curves_of
from tidegate.papers.leu.setup import BEST, SUITES, Application, Setup
from tidegate.papers.results import Key
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
