"""What can be varied in the reproduction of statistical caching."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

from tidegate import units
from tidegate.options import parse_spec
from tidegate.papers import setup
from tidegate.papers.setup import option, require

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
class Setup(setup.Setup):
    """Statistical caching (MEMSYS'19): LEU's examples, miss-ratio curves, and every eviction policy
    beside Belady.
    """

    citation: ClassVar[str] = "Statistical Caching for Near Memory Management (MEMSYS'19)"
    year: ClassVar[int] = 2019
    example: ClassVar[str] = "--out report.html"
    tried: ClassVar[int] = 0

    scale: float = option(1.0, "Of the reduced sizes, e.g. 1/2.", share=True)
    # in the runs; curves have every size
    oversubscribe: str = option("50%", "How much larger than near memory the footprint is.")
    every: int = 1  # run one in so many applications of a suite
    sequences: int = 60  # random ones, for the stack property
    policies: tuple[str, ...] = ()  # none: all
    given: tuple[tuple[str, str, str], ...] = ()  # other applications: suite, name and workload

    def __post_init__(self) -> None:
        super().__post_init__()
        expected = "oversubscribe must be above 0%, or everything fits"
        require(units.oversubscription(self.oversubscribe) > 0, expected, self.oversubscribe)

    @classmethod
    def quick(cls) -> Self:
        return cls(every=5, sequences=20)

    @property
    def as_published(self) -> bool:
        return super().as_published and (self.every, self.policies, self.given) == (1, (), ())

    @cached_property
    def applications(self) -> dict[Application, str]:
        """Every application's workload."""
        from tidegate.workloads import suites

        if self.given:
            return {Application(suite, name): spec for suite, name, spec in self.given}
        return {
            Application(name, parse_spec(spec)[0].removeprefix(f"{name}-")): spec
            for name, (_, scale) in SUITES.items()
            for spec in suites.suite(name, scale * self.scale)[:: self.every]
        }

    @property
    def evictions(self) -> tuple[str, ...]:
        """Every eviction policy, Belady first, and LEU's variants."""
        from tidegate.policies.registries import eviction

        every = self.policies or (*eviction.names(), *VARIANTS)
        return (BEST, *(policy for policy in every if policy != BEST))

    def describe(self) -> str:
        counted = {name: sum(at.suite == name for at in self.applications) for name in SUITES}
        suites = ", ".join(
            f"{n} of {name} at 1/{1 / (SUITES[name][1] * self.scale):g}"
            for name, n in counted.items()
            if n
        )
        return (
            f"{len(self.applications)} applications: {suites} of their sizes. As sequences of "
            f"regions at {len(SHARES)} sizes; and under {len(self.evictions)} eviction policies "
            f"with {self.oversubscribe} more than fits, one slot and whole regions."
        )
