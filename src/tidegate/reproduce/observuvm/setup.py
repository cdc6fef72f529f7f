"""What is run: the grid of applications and systems, and the runs of Figures 3 and 5."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate import units
from tidegate.errors import TidegateError
from tidegate.experiments.specification import RunSpec
from tidegate.options import parse_spec
from tidegate.reproduce.observuvm.counters import PinnedFar, Probe
from tidegate.reproduce.observuvm.recorder import Recorder
from tidegate.workloads.suites import suite

MACHINE = "rtx3090-pcie4"
SYSTEMS = ("uvm", "acbm", "ea", "lru", "lfu", "cp", "tm", "tm+", "tm++")
OBSERVED = 100  # regions, at the paper's sizes (IV-A)
WATCHED = 100  # evicted regions, likewise (V-D)
# regions of Figure 3
PROBED = (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 384, 448, 512, 768, 1024)

QUICK_SCALE = 1 / 8
ROBUST_SCALE = 1 / 8


@dataclass(frozen=True)
class Setup:
    """What can be varied. ``Setup()`` is the paper's own."""

    oversubscribe: str | float = "50%"
    scale: float = 1.0  # of the applications' sizes; the number of observed regions follows
    observed: int = OBSERVED  # regions observed at a time, at the paper's sizes
    samples: int = 0  # pages sampled per observed region; 0 adapts it (V-D)
    readings: int = 0  # combinations of open readings to try
    robust_scale: float = ROBUST_SCALE  # of the applications' sizes, there
    systems: tuple[str, ...] = SYSTEMS
    # other applications in place of Table II's: name and workload
    given: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if self.scale <= 0 or self.robust_scale <= 0:
            raise TidegateError(
                f"a scale of {min(self.scale, self.robust_scale):g} is none; expected something like 1/8"
            )
        if "uvm" not in self.systems:
            raise TidegateError(
                f"systems {', '.join(self.systems)} lack uvm, which everything is measured against"
            )
        if self.observed < 1:
            raise TidegateError(f"{self.observed} observed regions are none; expected at least 1")
        if self.samples < 0:
            raise TidegateError(
                f"{self.samples} samples are none; expected at least 1, or 0 to adapt the number"
            )
        units.oversubscription(self.oversubscribe)

    @classmethod
    def quick(cls) -> Setup:
        """A reduced grid."""
        return cls(scale=QUICK_SCALE)

    @property
    def applications(self) -> dict[str, str]:
        """Every application's workload, by name."""
        return dict(self.given) or {
            parse_spec(spec)[0]: spec for spec in suite("observuvm", self.scale)
        }

    @property
    def observed_here(self) -> int | None:
        """Regions observed at a time at this scale; None leaves it to the policies."""
        here = max(1, round(self.observed * self.scale))
        return None if here == OBSERVED else here

    @property
    def watched_here(self) -> int | None:
        """Evicted regions by which the number of samples is judged: V-D's 100 at this scale,
        however many are observed.
        """
        return None if self.observed_here is None else max(1, round(WATCHED * self.scale))

    def ask(self, workload: str, system: str) -> RunSpec:
        """One run of the grid."""
        return RunSpec(
            workload,
            MACHINE,
            system,
            oversubscribe=self.oversubscribe,
            samples=self.samples,
            observed=self.observed_here,
            watched=self.watched_here,
        )

    def at(self, scale: float) -> Setup:
        """The same at another scale."""
        return replace(self, scale=scale)

    def describe(self) -> str:
        """In words, for the report."""
        samples = (
            f"{self.samples} pages are" if self.samples else "a number of pages that adapts is"
        )
        scale = (
            "at the paper's sizes" if self.scale == 1 else f"at {self.scale:g} of the paper's sizes"
        )
        observed = self.observed_here or OBSERVED
        level = units.fraction(self.oversubscribe)
        return (
            f"{len(self.applications)} applications {scale}, each {level:.0%} larger than near memory, under "
            f"{len(self.systems)} systems on {MACHINE}; up to {observed} regions are observed at a time, and in each "
            f"of them {samples} sampled."
        )


def grid_of(setup: Setup) -> dict[tuple[str, str], RunSpec]:
    """Applications × systems."""
    return {
        (a, s): setup.ask(spec, s) for a, spec in setup.applications.items() for s in setup.systems
    }


def used_of(setup: Setup) -> dict[str, RunSpec]:
    """Figure 5: every application under UVM, with a recorder."""
    return {
        a: replace(setup.ask(spec, "uvm"), placement=Recorder())
        for a, spec in setup.applications.items()
    }


def counted_of() -> dict[int, RunSpec]:
    """Figure 3: regions pinned far, more and more of them."""
    return {
        p: RunSpec(Probe(regions=p), MACHINE, placement=PinnedFar(), prefetch="none")
        for p in PROBED
    }


def check(setup: Setup) -> None:
    """Look every name and number up before the first run begins."""
    applications = list(setup.applications.values())
    for spec in applications:
        setup.ask(spec, "uvm").prepare()
    for system in setup.systems:
        setup.ask(applications[0], system).prepare()
