"""What can be varied in the reproduction of GMT."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

from tidegate import units
from tidegate.reproduce import setup
from tidegate.reproduce.setup import option, require

MACHINE = "a100-pcie3-ssd"
BASE = "bam"
PLACEMENTS = ("tier-order", "tier-random", "tier-reuse")
SYSTEMS = (BASE, *PLACEMENTS, "hmm", "hmm-optimistic", "tier-belady")
RATIO, FACTOR, PAGE = 4.0, 2.0, 65536
TABLE_2 = "Table 2"  # the sizes that Table 2 and Figure 7 make
QUICK_SCALE = 1 / 8
_LARGEST = 1024.0


@dataclass(frozen=True)
class Setup(setup.Setup):
    """GMT (ASPLOS'24): 9 applications over three tiers, under 7 systems.

    Sizes are 1/64 of the paper's (workloads/suites.py). Without a factor they are those of Table 2,
    and the stated factor of 2 is run beside them.
    """

    citation: ClassVar[str] = (
        "GMT: GPU Orchestrated Memory Tiering for the Big Data Era (ASPLOS'24)"
    )
    year: ClassVar[int] = 2024
    example: ClassVar[str] = "--factor 4 --tier2-ratio 8"
    base: ClassVar[str] = BASE
    tried: ClassVar[int] = 256  # each reading runs all applications

    # Ratios are kept, so the claims are made for any scale.
    scale: float = option(1.0, "Of the suite's sizes, e.g. 1/8.", share=True, changes_claims=False)
    factor: float | None = option(None, "Footprint over both tiers; Table 2's without it.")
    ratio: float = option(RATIO, "Tier-2 over Tier-1.", flag="--tier2-ratio")
    near: str | None = option(None, "Tier-1, e.g. 512MiB; with --factor footprints follow.")
    systems: tuple[str, ...] = SYSTEMS
    given: tuple[tuple[str, str, int], ...] = ()  # name, workload and near bytes, likewise

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.factor is not None:
            expected = (
                "factor must be the footprint over both tiers, positive and at most 1024, such as 2"
            )
            require(0 < self.factor <= _LARGEST, expected, self.factor)
        expected = "ratio must be Tier-2 over Tier-1, positive and at most 1024, such as 4"
        require(0 < self.ratio <= _LARGEST, expected, self.ratio)
        if self.near is not None:
            expected = "near must be at least one page of 64 KiB"
            require(units.size(self.near) >= PAGE, expected, self.near)
        for system in self.systems:
            require(system in SYSTEMS, f"systems must be among {', '.join(SYSTEMS)}", system)

    @classmethod
    def quick(cls) -> Self:
        return cls(scale=QUICK_SCALE)

    @property
    def sizes(self) -> tuple[str, ...]:
        """Table 2's sizes and the stated factor, or the factor that is given."""
        if self.factor is not None:
            return (f"factor {self.factor:g}",)
        return (TABLE_2, f"factor {FACTOR:g}") if self.near is None else (TABLE_2,)

    @cached_property
    def applications(self) -> dict[str, tuple[str, int]]:
        """Every application's workload and Tier-1 in bytes, by the paper's name."""
        from tidegate.workloads import suites

        if self.given:
            return {name: (spec, near) for name, spec, near in self.given}
        specs = suites.suite("gmt", self.scale)
        return {
            m.name.removeprefix("gmt-"): (spec, round(m.near * self.scale))
            for m, spec in zip(suites.members("gmt"), specs, strict=True)
        }

    def describe(self) -> str:
        near = f"Tier-1 {self.near}"
        if self.near is None:
            near = (
                "Tier-1 as in Table 2's decoding" if self.factor is None else "Tier-1 by the factor"
            )
        sizes = f"at 1/{64 / self.scale:g} of the paper's sizes"
        if self.near is not None and self.factor is not None:
            sizes = "of sizes that follow Tier-1"
        return (
            f"{len(self.applications)} applications {sizes}, {near}, Tier-2 {self.ratio:g} times "
            f"Tier-1, {' and '.join(self.sizes)}, under {len(self.systems)} systems on {MACHINE}."
        )
