"""What can be varied in the reproduction of ObservUVM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from tidegate import units
from tidegate.options import parse_spec
from tidegate.papers import setup
from tidegate.papers.setup import option, require

MACHINE = "rtx3090-pcie4"
SYSTEMS = ("uvm", "acbm", "ea", "lru", "lfu", "cp", "tm", "tm+", "tm++")
OBSERVED = 100  # regions, at the paper's sizes (IV-A)
WATCHED = 100  # evicted regions, likewise (V-D)
QUICK_SCALE = ROBUST_SCALE = 1 / 8
GRID, FIGURE_3, FIGURE_5 = "grid", "Figure 3", "Figure 5"  # groups
# Systems that are run with other values, by option. Figure 16 is about LRU with prefetch as in UVM.
SWEPT = {
    "oversubscribe": ("uvm", "lru", "lfu", "cp", "tm", "tm++"),
    "observed": ("uvm", "lru"),
    "samples": ("uvm", "lru", "lfu", "cp"),
}
TOURNAMENTS = ("tm", "tm++")  # whose choices --spread repeats
# regions of Figure 3
PROBED = (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 384, 448, 512, 768, 1024)


def spread_group(percent: int) -> str:
    """Return the group of the runs whose SMs drift apart by so much."""
    return f"spread {percent}%"


def sweep_group(name: str, value: Any) -> str:
    """Return the group of the runs with another value of a swept option."""
    return f"{name} {value}"


@dataclass(frozen=True)
class Setup(setup.Setup):
    """ObservUVM (ISCA'26): 14 applications under 9 systems."""

    citation: ClassVar[str] = "ObservUVM: Observability-aided GPU Memory Oversubscription (ISCA'26)"
    year: ClassVar[int] = 2026
    example: ClassVar[str] = "--quick --out report.html"
    base: ClassVar[str] = "uvm"

    oversubscribe: tuple[str, ...] = option(
        ("50%",),
        "How much larger than near memory the footprint is; several, with commas, make Figure 14.",
        sweeps=True,
        meaning=units.oversubscription,
    )
    observed: tuple[int, ...] = option(  # at the paper's sizes
        (OBSERVED,),
        "Regions observed at a time; several, with commas, make Figure 16.",
        sweeps=True,
    )
    samples: tuple[int, ...] = option(  # V-D
        (0,),
        "Pages sampled per observed region; 0 adapts the number; several, with commas, make "
        "Figure 17.",
        sweeps=True,
    )
    spread: int = option(
        0,
        "Times that tournaments are run again, with SMs that drift apart by 1 %, 2 % and so on: "
        "the spread of their choices.",
        changes_claims=False,
    )
    robust_scale: float = ROBUST_SCALE  # of the applications' sizes, where readings are tried
    systems: tuple[str, ...] = SYSTEMS
    given: tuple[tuple[str, str], ...] = ()  # name and workload, in place of Table II's

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.robust_scale > 0, "robust_scale must be positive", self.robust_scale)
        most = 2**31 - 1
        for observed in self.observed:
            require(observed >= 1, "observed must be at least 1 region", observed)
            require(observed <= most, f"observed must be at most {most}", observed)
        for samples in self.samples:
            require(samples <= most, f"samples must be at most {most}", samples)
            expected = "samples must be at least 1, or 0 to adapt the number"
            require(samples >= 0, expected, samples)
        for level in self.oversubscribe:
            units.oversubscription(level)
        require(0 <= self.spread <= 99, "spread must be from 0 to 99", self.spread)

    @classmethod
    def quick(cls) -> Self:
        return cls(scale=QUICK_SCALE)

    @property
    def applications(self) -> dict[str, str]:
        """Every application's workload, by name."""
        from tidegate.workloads import suites

        named = {parse_spec(spec)[0]: spec for spec in suites.suite("observuvm", self.scale)}
        return dict(self.given) or named

    @property
    def counts(self) -> dict[str, Any]:
        """The fields of a run that count regions; they scale together, with the applications."""
        observed = self.main("observed")
        if self.scale == 1 and observed == OBSERVED:
            return {}
        return {
            "count_scale": self.scale,
            "observed": self.here(observed),
            "watched": self.here(WATCHED),
        }

    def here(self, regions: int) -> int:
        """Return so many regions at the paper's sizes, at this scale."""
        return max(1, round(regions * self.scale))

    def describe(self) -> str:
        pages = self.main("samples")
        samples = f"{pages} pages are" if pages else "a number of pages that adapts is"
        scale = "the paper's sizes" if self.scale == 1 else f"{self.scale:g} of the paper's sizes"
        level = units.fraction(self.main("oversubscribe"))
        return (
            f"{len(self.applications)} applications at {scale}, each {level:.0%} larger than near "
            f"memory, under {len(self.systems)} systems on {MACHINE}; up to "
            f"{self.here(self.main('observed'))} regions are observed at a time, and in each of "
            f"them {samples} sampled."
        )
