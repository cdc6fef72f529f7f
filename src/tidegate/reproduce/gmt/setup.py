"""What is run: nine applications under GMT's placements, HMM and the bound, in tiers whose ratios
are the paper's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from tidegate import units
from tidegate.errors import TidegateError
from tidegate.experiments.specification import RunSpec
from tidegate.options import parse_spec
from tidegate.reproduce.kept import Kept
from tidegate.workloads.suites import members, suite

MACHINE = "a100-pcie3-ssd"
BASE = "bam"
PLACEMENTS = ("tier-order", "tier-random", "tier-reuse")
# System → placement and who serves misses, if not as the placement has it.
SYSTEMS: dict[str, tuple[str, str | None]] = {
    "bam": ("bam", None),
    "tier-order": ("tier-order", None),
    "tier-random": ("tier-random", None),
    "tier-reuse": ("tier-reuse", None),
    "hmm": ("hmm", None),
    "hmm-optimistic": ("tier-reuse", "cpu"),  # 3.6: HMM with the hit rates of GMT-Reuse
    "tier-belady": ("tier-belady", None),
}
RATIO, FACTOR, PAGE = 4.0, 2.0, 65536
# misses under way at a time: the machine's 864 over 64, as all sizes, and enough to keep SSD and
# link busy
SLOTS = 16
TABLE_2 = "Table 2"  # the sizes that Table 2 and Figure 7 make
QUICK_SCALE = 1 / 8


@dataclass(frozen=True)
class Setup:
    """What can be varied. ``Setup()`` is the paper's own, at 1/64 of its sizes; see
    workloads/suites.py.

    ``factor``: footprint over both tiers, for all applications; without it the sizes are Table 2's,
    and the stated factor of 2 is run beside them. ``near``: Tier-1, for all applications; with a
    factor the footprints follow it, without one they stay.
    """

    factor: float | None = None
    ratio: float = RATIO  # Tier-2 over Tier-1
    near: str | None = None
    scale: float = 1.0
    readings: int = 0  # combinations of open readings to try
    systems: tuple[str, ...] = tuple(SYSTEMS)
    # other applications in place of Table 2's: name, workload, near bytes
    given: tuple[tuple[str, str, int], ...] = ()

    def __post_init__(self) -> None:
        if self.scale <= 0:
            raise TidegateError(f"a scale of {self.scale:g} is none; expected something like 1/8")
        if self.factor is not None and not 0 < self.factor < math.inf:
            raise TidegateError(
                f"a factor of {self.factor:g} is none; expected the footprint over both tiers, such as 2"
            )
        if not 0 < self.ratio < math.inf:
            raise TidegateError(
                f"a ratio of {self.ratio:g} leaves no Tier-2; expected Tier-2 over Tier-1, such as 4"
            )
        if self.near is not None and units.size(self.near) < PAGE:
            raise TidegateError(
                f"near memory of {self.near} cannot hold one page of 64 KiB; give it more"
            )
        if BASE not in self.systems:
            raise TidegateError(
                f"systems {', '.join(self.systems)} lack {BASE}, which everything is measured against"
            )

    @classmethod
    def quick(cls) -> Setup:
        """All of it at an eighth of the size: graphs take most of the time."""
        return cls(scale=QUICK_SCALE)

    @property
    def as_published(self) -> bool:
        return (self.factor, self.ratio, self.near) == (None, RATIO, None)

    @property
    def sizes(self) -> tuple[str, ...]:
        """Table 2's sizes and the stated factor, or the factor that was asked for."""
        if self.factor is not None:
            return (f"factor {self.factor:g}",)
        return (TABLE_2, f"factor {FACTOR:g}") if self.near is None else (TABLE_2,)

    @cached_property
    def applications(self) -> dict[str, tuple[str, int]]:
        """Every application's workload and Tier-1 in bytes, by the paper's name."""
        if self.given:
            return {name: (spec, near) for name, spec, near in self.given}
        specs = suite("gmt", self.scale)
        return {
            m.name.removeprefix("gmt-"): (spec, round(m.near * self.scale))
            for m, spec in zip(members("gmt"), specs, strict=True)
        }

    def ask(self, application: str, system: str, size: str) -> RunSpec:
        """One run of the grid."""
        placement, service = SYSTEMS[system]
        spec, near = self._sized(application, size)
        return RunSpec(
            Kept(spec),
            MACHINE,
            tiering=placement,
            near=near,
            middle=round(near * self.ratio),
            slots=max(SLOTS, round(SLOTS * self.scale)),
            service=service,
            traits=system == BASE,
        )

    def _sized(self, application: str, size: str) -> tuple[str, int]:
        """The workload, and Tier-1 in bytes."""
        spec, near = self.applications[application]
        near = near if self.near is None else units.size(self.near)
        if size == TABLE_2:
            return spec, near
        factor = float(size.split()[1])
        name, options = parse_spec(spec)
        if self.near is None:
            return spec, max(
                PAGE, round(units.size(options["bytes"]) / (factor * (1 + self.ratio)))
            )
        return f"{name}(bytes={round(factor * (1 + self.ratio) * near)})", near

    def describe(self) -> str:
        """In words, for the report."""
        near = (
            ("Tier-1 as in Table 2's decoding" if self.factor is None else "Tier-1 by the factor")
            if self.near is None
            else f"Tier-1 {self.near}"
        )
        follow = self.near is not None and self.factor is not None
        sizes = (
            "of sizes that follow Tier-1"
            if follow
            else f"at 1/{64 / self.scale:g} of the paper's sizes"
        )
        return (
            f"{len(self.applications)} applications {sizes}, {near}, "
            f"Tier-2 {self.ratio:g} times Tier-1, {' and '.join(self.sizes)}, under {len(self.systems)} systems "
            f"on {MACHINE}."
        )


Key = tuple[str, str, str]  # application, system, size


def grid_of(setup: Setup) -> dict[Key, RunSpec]:
    """Applications × sizes × systems, application by application."""
    return {
        (a, s, size): setup.ask(a, s, size)
        for a in setup.applications
        for size in setup.sizes
        for s in setup.systems
    }


def check(setup: Setup) -> None:
    """Look every name and number up before the first run begins."""
    first = next(iter(setup.applications))
    for system in setup.systems:
        if system not in SYSTEMS:
            raise TidegateError(
                f"system '{system}' is not among GMT's; expected some of {', '.join(SYSTEMS)}"
            )
        setup.ask(first, system, setup.sizes[0]).prepare()
