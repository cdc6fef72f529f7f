"""What is run: 23 applications under nine systems, with 75 % and 50 % of their footprint in near
memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate import units
from tidegate.errors import TidegateError
from tidegate.experiments.specification import RunSpec
from tidegate.options import parse_spec
from tidegate.policies.systems import find_system
from tidegate.trace.geometry import Geometry
from tidegate.workloads.suites import members, suite

MACHINE = "gpgpusim-28sm"
BASE = "sl+lru"
SYSTEMS = (
    "sl+lru",
    "cppe",
    "cppe-scheme1",
    "sl+mhpe",
    "sl+random",
    "sl+lru-10%",
    "sl+lru-20%",
    "sl-stop+lru",
    "sl+hpe",
)
OWN = ("cppe", "cppe-scheme1", "sl+mhpe")  # those with MHPE, whose constants can be varied
LEVELS = ("75%", "50%")  # of the footprint, that fits
PAGE = "4KiB"
CHUNK = units.size("64KiB")
KINDS = {member.name.removeprefix("cppe-"): member.kind for member in members("cppe")}


@dataclass(frozen=True)
class Setup:
    """What can be varied. ``Setup()`` is the paper's own."""

    levels: tuple[str, ...] = LEVELS
    t1: int = 32
    t2: int = 40
    t3: int = 32
    interval: int = 64
    chunk: str = "64KiB"
    scale: float = 1.0
    readings: int = 0  # combinations of open readings to try
    systems: tuple[str, ...] = SYSTEMS
    crossing: bool = True  # run the systems of both papers on both papers' applications, too
    # other applications in place of Table II's: name and workload
    given: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if self.scale <= 0:
            raise TidegateError(f"a scale of {self.scale:g} is none; expected something like 1/8")
        if BASE not in self.systems:
            raise TidegateError(
                f"systems {', '.join(self.systems)} lack {BASE}, which everything is measured against"
            )
        if not self.levels:
            raise TidegateError("no level was given; expected shares that fit, such as 75%,50%")
        for level in self.levels:
            if not 0 < units.fraction(level) <= 1:
                raise TidegateError(
                    f"a level of {level} is none; expected the share that fits, such as 75%"
                )
        # findings and figures know levels by their names, so 0.5 and 1/2 are 50%
        shown = dict.fromkeys(f"{100 * units.fraction(level):g}%" for level in self.levels)
        object.__setattr__(self, "levels", tuple(shown))

    @classmethod
    def quick(cls) -> Setup:
        """One level, and no crossing."""
        return cls(levels=("50%",), crossing=False)

    @property
    def as_published(self) -> bool:
        return (self.levels, self.t1, self.t2, self.t3, self.interval, self.chunk, self.scale) == (
            LEVELS,
            32,
            40,
            32,
            64,
            "64KiB",
            1.0,
        )

    @property
    def applications(self) -> dict[str, str]:
        """Every application's workload, by the paper's abbreviation."""
        return dict(self.given) or {
            parse_spec(spec)[0].removeprefix("cppe-"): spec for spec in suite("cppe", self.scale)
        }

    @property
    def geometry(self) -> Geometry:
        return Geometry.parse(f"{PAGE}/{self.chunk}")

    def ask(self, workload: str, system: str, level: str) -> RunSpec:
        """One run of the grid."""
        return RunSpec(
            workload,
            MACHINE,
            system,
            eviction=self.mhpe if system in OWN else None,
            prefetch=self.prefetch(system),
            oversubscribe=1 / units.fraction(level) - 1,
            geometry=self.geometry,
        )

    @property
    def mhpe(self) -> str:
        """MHPE with this set-up's constants."""
        own = {"interval": self.interval, "t1": self.t1, "t2": self.t2, "t3": self.t3}
        return f"mhpe({', '.join(f'{k}={v}' for k, v in own.items())})"

    def prefetch(self, system: str) -> str | None:
        """A system's prefetcher where it is not its own: the naive one fetches a chunk, so its
        blocks follow the chunk.
        """
        own = find_system(system).prefetch
        if units.size(self.chunk) == CHUNK or own not in ("sequential-local", "stop-when-full"):
            return None
        block = f"sequential-local(block={units.size(self.chunk)})"
        return block if own == "sequential-local" else f"stop-when-full(of={block})"

    def describe(self) -> str:
        """In words, for the report."""
        scale = "" if self.scale == 1 else f" at {self.scale:g} of their sizes"
        return (
            f"{len(self.applications)} applications{scale}, {' and '.join(self.levels)} of each in near memory, under "
            f"{len(self.systems)} systems on {MACHINE}, in chunks of {self.chunk}. MHPE: T1 {self.t1}, T2 {self.t2}, "
            f"T3 {self.t3}, intervals of {self.interval}."
        )


def grid_of(setup: Setup) -> dict[tuple[str, str, str], RunSpec]:
    """Applications × systems × levels, application by application."""
    return {
        (a, s, level): setup.ask(spec, s, level)
        for a, spec in setup.applications.items()
        for level in setup.levels
        for s in setup.systems
    }


def check(setup: Setup) -> None:
    """Look every name and number up before the first run begins."""
    # where there is room for a chunk, there is at all levels
    least = min(setup.levels, key=units.fraction)
    for (_, system, level), ask in grid_of(setup).items():
        if system == BASE and level == least:
            ask.prepare()
    first = next(iter(setup.applications.values()))
    for system in setup.systems:
        setup.ask(first, system, setup.levels[0]).prepare()
