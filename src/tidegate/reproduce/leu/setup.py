"""What is run: every suite's applications, as sequences of regions and under every eviction policy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from tidegate import units
from tidegate.errors import TidegateError
from tidegate.experiments.specification import RunSpec
from tidegate.experiments.two_tiers import OVERSUBSCRIBE
from tidegate.options import parse_spec
from tidegate.policies.interface.visibility import Samples
from tidegate.policies.registries import eviction
from tidegate.workloads.suites import suite

# The suites, on their papers' machines, at shares of their sizes for which all of it takes minutes
SUITES = {
    "observuvm": ("rtx3090-pcie4", 1 / 32),
    "cppe": ("gpgpusim-28sm", 1 / 8),
    "gmt": ("a100-pcie3-ssd", 1 / 8),
}
BEST = "belady"
# beside leu itself: sampled, and bounded so that references are replaced
VARIANTS = ("leu(sample=0.1)", "leu(table=2)")
SHARES = tuple(round(0.1 * i, 1) for i in range(1, 10))  # of the regions touched, in the curves


class Application(NamedTuple):
    """One workload of a suite."""

    suite: str
    name: str


@dataclass(frozen=True)
class Setup:
    """What can be varied."""

    scale: float = 1.0  # of the sizes above
    oversubscribe: str = OVERSUBSCRIBE  # in the runs; curves have every size
    every: int = 1  # run every so-many-th application of a suite
    sequences: int = 60  # random ones, for the stack property
    policies: tuple[str, ...] = ()  # none: all
    given: tuple[tuple[str, str, str], ...] = ()  # other applications: suite, name and workload

    def __post_init__(self) -> None:
        if self.scale <= 0:
            raise TidegateError(f"a scale of {self.scale:g} is none; expected something like 1/2")
        if units.oversubscription(self.oversubscribe) <= 0:
            raise TidegateError(
                f"oversubscribed by {self.oversubscribe} everything fits; expected something like 50%"
            )

    @classmethod
    def quick(cls) -> Setup:
        """Every fifth application."""
        return cls(every=5, sequences=20)

    @property
    def as_shipped(self) -> bool:
        return (self.scale, self.oversubscribe, self.every, self.policies, self.given) == (
            1.0,
            OVERSUBSCRIBE,
            1,
            (),
            (),
        )

    @cached_property
    def applications(self) -> dict[Application, str]:
        """Every application's workload."""
        if self.given:
            return {Application(suite, name): spec for suite, name, spec in self.given}
        return {
            Application(name, parse_spec(spec)[0].removeprefix(f"{name}-")): spec
            for name, (_, scale) in SUITES.items()
            for spec in suite(name, scale * self.scale)[:: self.every]
        }

    @property
    def evictions(self) -> tuple[str, ...]:
        """Every eviction policy, Belady first, and LEU's variants."""
        every = self.policies or (*eviction.names(), *VARIANTS)
        return (BEST, *(policy for policy in every if policy != BEST))

    def ask(self, at: Application, policy: str) -> RunSpec:
        """One run: one slot, so that all policies see the touches in one order, and whole regions,
        so that only eviction differs.
        """
        machine, scale = SUITES[at.suite]
        most = eviction.make(policy).sees
        observed = (
            max(1, round(most.regions * scale * self.scale)) if isinstance(most, Samples) else None
        )
        return RunSpec(
            self.applications[at],
            machine,
            eviction=policy,
            prefetch="region",
            slots=1,
            observed=observed,
            watched=observed,
            oversubscribe=self.oversubscribe,
        )

    def describe(self) -> str:
        """In words, for the report."""
        counted = {name: sum(at.suite == name for at in self.applications) for name in SUITES}
        suites = ", ".join(
            f"{n} of {name} at 1/{1 / (SUITES[name][1] * self.scale):g}"
            for name, n in counted.items()
            if n
        )
        return (
            f"{len(self.applications)} applications: {suites} of their sizes. As sequences of regions at "
            f"{len(SHARES)} sizes; and under {len(self.evictions)} eviction policies with {self.oversubscribe} more than "
            f"fits, one slot and whole regions."
        )


def grid_of(setup: Setup) -> dict[tuple[Application, str], RunSpec]:
    """Applications × policies, application by application."""
    return {
        (at, policy): setup.ask(at, policy)
        for at in setup.applications
        for policy in setup.evictions
    }


def check(setup: Setup) -> None:
    """Look every name and number up before the first run begins."""
    for at in setup.applications:
        setup.ask(at, BEST).prepare()
    for policy in setup.evictions:
        eviction.make(policy)
