"""What can be varied in the reproduction of GMT."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

from tidegate import units
from tidegate.papers import setup
from tidegate.papers.setup import option, require

MACHINE = "a100-pcie3-ssd"
BASE = "bam"
PLACEMENTS = ("tier-order", "tier-random", "tier-reuse")
BOUND = "tier-belady"
SYSTEMS = (BASE, *PLACEMENTS, "hmm", BOUND)
RATIO, PAGE = 4.0, 65536
TABLE_2 = "Table 2"  # the sizes that Table 2 and Figure 7 make
STATED = "factor 2"  # the one that the text states (3.1)
QUICK_SCALE = 1 / 8
_LARGEST = 1024.0


def size_of(factor: float) -> str:
    """Return the group of the runs at a factor."""
    return f"factor {factor:g}"


@dataclass(frozen=True)
class Setup(setup.Setup):
    """GMT (ASPLOS'24): 9 applications over three tiers, under 6 systems.

    Sizes are 1/64 of the paper's (``applications.GB``). Without a factor they are those of Table 2,
    and the stated factor of 2 is run beside them.
    """

    citation: ClassVar[str] = (
        "GMT: GPU Orchestrated Memory Tiering for the Big Data Era (ASPLOS'24)"
    )
    year: ClassVar[int] = 2024
    example: ClassVar[str] = "--factor 4 --tier2-ratio 8"
    base: ClassVar[str] = BASE
    tried: ClassVar[int] = 256  # each reading runs all applications

    # Ratios are kept, so claims are made for larger scales, too. In smaller ones a few misses
    # under way fill Tier-1.
    scale: float = option(1.0, "Of the suite's sizes, e.g. 1/8.", share=True, changes_claims=False)
    factor: tuple[float, ...] = option(
        (),
        "Footprint over both tiers; Table 2's and 2 without it. Several, with commas, make "
        "Figure 11.",
    )
    ratio: tuple[float, ...] = option(
        (RATIO,),
        "Tier-2 over Tier-1; several, with commas, make Figure 12.",
        flag="--tier2-ratio",
        sweeps=True,
    )
    near: tuple[str, ...] = option(
        (),
        "Near memory (Tier-1), e.g. 512MiB; with --factor footprints follow. Several, with commas, "
        "make Figure 13.",
        meaning=units.size,
    )
    systems: tuple[str, ...] = SYSTEMS
    given: tuple[tuple[str, str, int], ...] = ()  # name, workload and near bytes, likewise

    def __post_init__(self) -> None:
        super().__post_init__()
        for factor in self.factor:
            expected = (
                "factor must be the footprint over both tiers, positive and at most 1024, such as 2"
            )
            require(0 < factor <= _LARGEST, expected, factor)
        for ratio in self.ratio:
            expected = (
                "tier2-ratio must be Tier-2 over Tier-1, positive and at most 1024, such as 4"
            )
            require(0 < ratio <= _LARGEST, expected, ratio)
        for near in self.near:
            expected = "near must be at least one page of 64 KiB"
            require(units.size(near) >= PAGE, expected, near)
        for system in self.systems:
            require(system in SYSTEMS, f"systems must be among {', '.join(SYSTEMS)}", system)

    @classmethod
    def quick(cls) -> Self:
        return cls(scale=QUICK_SCALE)

    @property
    def as_published(self) -> bool:
        return super().as_published and self.scale >= 1

    @property
    def sizes(self) -> tuple[str, ...]:
        """Table 2's sizes and the stated factor, or the factor that is given."""
        if self.factor:
            return (size_of(self.factor[0]),)
        return (TABLE_2,) if self.near else (TABLE_2, STATED)

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
        if self.near:
            near = f"Tier-1 {self.near[0]}"
        else:
            near = "Tier-1 by the factor" if self.factor else "Tier-1 as in Table 2's decoding"
        sizes = f"at 1/{64 / self.scale:g} of the paper's sizes"
        if self.near and self.factor:
            sizes = "of sizes that follow Tier-1"
        return (
            f"{len(self.applications)} applications {sizes}, {near}, Tier-2 "
            f"{self.main('ratio'):g} times Tier-1, {' and '.join(self.sizes)}, under "
            f"{len(self.systems)} systems on {MACHINE}."
        )
