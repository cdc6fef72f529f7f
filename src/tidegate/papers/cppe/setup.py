"""What can be varied in the reproduction of CPPE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from tidegate import units
from tidegate.options import parse_spec
from tidegate.papers import setup
from tidegate.papers.setup import option, require
from tidegate.trace.geometry import Geometry

MACHINE = "gpgpusim-28sm"
BASE = "sl+lru"
OWN = ("cppe", "cppe-scheme1", "sl+mhpe")  # those with MHPE, whose constants can be varied
OTHERS = ("sl+random", "sl+lru-10%", "sl+lru-20%", "sl-stop+lru", "sl+hpe")
SYSTEMS = (BASE, *OWN, *OTHERS)
_MOST = 2**31 - 1
PAGE = 4096
_LEAST = {"t1": 0, "t2": 0, "t3": 0, "interval": 1}
LEVELS = ("75%", "50%")  # of the footprint, that fits


@dataclass(frozen=True)
class Setup(setup.Setup):
    """CPPE (IPDPS'20): 23 applications under 9 systems, 75 % and 50 % of each in near memory."""

    citation: ClassVar[str] = (
        "CPPE: Coordinated Page Prefetch and Eviction for Memory Oversubscription Management in "
        "GPUs (IPDPS'20)"
    )
    year: ClassVar[int] = 2020
    example: ClassVar[str] = "--t1 16 --out report.html"
    base: ClassVar[str] = BASE
    tried: ClassVar[int] = 24  # each reading runs all applications at both levels

    levels: tuple[str, ...] = option(
        LEVELS,
        "Shares of the footprint that fit, with commas: 75%,50%.",
        flag="--fits",
        changes_claims=False,  # each claim is made for a level
        meaning=units.fitting_share,
    )
    t1: tuple[int, ...] = option(
        (32,), "Untouched pages of an interval from which LRU takes over.", sweeps=True
    )
    t2: tuple[int, ...] = option((40,), "Those of the first four intervals.", sweeps=True)
    t3: tuple[int, ...] = option(
        (32,),
        "The forward distance grows while it is no more than this; several values of any of "
        "these, with commas, make a table.",
        sweeps=True,
    )
    interval: tuple[int, ...] = option((64,), "Pages in an interval.", sweeps=True)
    chunk: tuple[str, ...] = option(
        ("64KiB",), "Size of a chunk, e.g. 32KiB.", sweeps=True, meaning=units.size
    )
    systems: tuple[str, ...] = SYSTEMS
    crossing: bool = True  # also run the systems of both papers on both papers' applications
    given: tuple[tuple[str, str], ...] = ()  # name and workload, in place of Table II's

    def __post_init__(self) -> None:
        super().__post_init__()
        require(bool(self.levels), "fits must name a share that fits, such as 75%,50%", "none")
        for name, least in _LEAST.items():
            expected = f"{name} must be a number of pages from {least} to {_MOST}"
            for value in getattr(self, name):
                require(least <= value <= _MOST, expected, value)
        for chunk in self.chunk:
            Geometry(PAGE, units.size(chunk))  # which refuses what is no power of two
        # findings and figures know levels by their names, so 0.5 and 1/2 are 50%
        shown = tuple(f"{100 * units.fitting_share(level):g}%" for level in self.levels)
        object.__setattr__(self, "levels", shown)

    @classmethod
    def quick(cls) -> Self:
        return cls(levels=("50%",), crossing=False)

    @property
    def applications(self) -> dict[str, str]:
        """Every application's workload, by the paper's abbreviation."""
        from tidegate.workloads import suites

        specs = suites.suite("cppe", self.scale)
        named = {parse_spec(spec)[0].removeprefix("cppe-"): spec for spec in specs}
        return dict(self.given) or named

    @property
    def mhpe(self) -> str:
        """MHPE with the constants of this setup."""
        given = (f"{name}={self.main(name)}" for name in ("interval", "t1", "t2", "t3"))
        return f"mhpe({', '.join(given)})"

    def describe(self) -> str:
        scale = "" if self.scale == 1 else f" at {self.scale:g} of their sizes"
        return (
            f"{len(self.applications)} applications{scale}, {' and '.join(self.levels)} of each in "
            f"near memory, under {len(self.systems)} systems on {MACHINE}, in chunks of "
            f"{self.main('chunk')}. MHPE: T1 {self.main('t1')}, T2 {self.main('t2')}, T3 "
            f"{self.main('t3')}, intervals of {self.main('interval')}."
        )
