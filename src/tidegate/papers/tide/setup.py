"""What can be varied in the ledger of our own claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

from tidegate import units
from tidegate.papers import setup
from tidegate.papers.setup import option, require

OURS, BASE, BEST = "tide", "uvm", "belady"
DEVELOPED, HELD_BACK = "developed", "held back"
TRIED = 3  # one in so many of the developed applications is run with other constants


class Suite(NamedTuple):
    """A suite's machine, the share of its sizes that is run, and the published systems beside it:
    those of its paper, and those of other papers that decide from no more than faults and samples.

    CPPE's variants are left out, and systems that follow a compiler's plan where there is none.
    """

    machine: str
    share: float
    rivals: tuple[str, ...]


_SAMPLING = ("acbm", "ea", "lru", "lfu", "cp", "tm", "tm+", "tm++")  # ObservUVM's
SUITES = {
    "observuvm": Suite("rtx3090-pcie4", 1 / 16, ("host", *_SAMPLING)),
    "cppe": Suite("gpgpusim-28sm", 1 / 4, ("acbm", "host", "cppe", "tbn", "sl+lru", "sl+random")),
    "gmt": Suite("a100-pcie3-ssd", 1 / 8, ("acbm", "host", "lru", "tm", "tm++")),
    "openmp": Suite("v100-nvlink2", 1 / 4, ("acbm", "host", "tm++", "rlm", "glm", "rdm")),
    # as they were recorded: their sizes are not scaled
    "recorded": Suite("rtx3090-pcie4", 1, ("acbm", "host", "tm++", "rlm", "glm", "rdm")),
}
# SC'19's programs, as the compiler models examples/openmp; no suite of workloads has them
_OPENMP = ("backprop", "bfs", "cfd", "hotspot", "kmeans", "louvain", "nn", "srad")
# What tide was developed on; CPPE's are the odd ones of its table. OpenMP's were held back until a
# ledger said that tide was behind there; prices by costs were then found on them.
_DEVELOPED = {
    "observuvm": ["MM", "SRK", "HEL", "2DC", "LU", "SPM", "BTR"],
    "cppe": ["HOT", "2DC", "BKP", "DWT", "SAD", "BFS", "BIC", "HSD", "STN", "SGM", "SPV", "HYB"],
    "gmt": [],
    "openmp": list(_OPENMP),
    "recorded": [],
}
# Options of tide's parts that are halved and doubled, with their defaults
CONSTANTS: dict[str, dict[str, float]] = {
    "eviction": {"draws": 16, "doubt": 2.0, "share": 0.5, "forget": 256, "fine": 8},
    "prefetch": {"every": 16, "verdicts": 16},
    "placement": {
        **{"price": 0.25, "dearer": 4, "uses": 2, "earned": 4.0, "most": 64},
        **{"least": 2, "latest": 8, "probe": 16},
    },
}


class Application(NamedTuple):
    """One workload of a suite."""

    suite: str
    name: str

    @property
    def half(self) -> str:
        return DEVELOPED if self.name in _DEVELOPED[self.suite] else HELD_BACK


@dataclass(frozen=True)
class Setup(setup.Setup):
    """Our own system, tide: its targets, on what it was developed on and on what was held back."""

    citation: ClassVar[str] = "tide: one system that nobody has to choose (ours)"
    year: ClassVar[int] = 2026
    example: ClassVar[str] = "--quick --out report.html"
    base: ClassVar[str] = BASE
    tried: ClassVar[int] = 0

    scale: float = option(1.0, "Of the reduced sizes, e.g. 1/2.", share=True)
    levels: tuple[str, ...] = option(
        ("25%", "50%", "100%"),
        "How much larger than near memory the footprint is, with commas.",
        flag="--oversubscribe",
        meaning=units.oversubscription,
    )
    recorded: str = option(
        "",
        "A folder of recorded programs (python -m benchmarks.own_programs FOLDER --record).",
        changes_claims=False,
    )
    every: int = 1  # run one in so many applications of a suite
    systems: tuple[str, ...] = (BASE, OURS)  # that every suite is run under, beside its rivals
    given: tuple[tuple[str, str, str], ...] = ()  # other applications: suite, name and workload

    def __post_init__(self) -> None:
        super().__post_init__()
        require(bool(self.levels), "oversubscribe must have a level", "none")
        is_folder = not self.recorded or Path(self.recorded).is_dir()
        require(is_folder, "recorded must be a folder", self.recorded)
        for level in self.levels:
            expected = "oversubscribe must be above 0%, or everything fits"
            require(units.oversubscription(level) > 0, expected, level)

    @classmethod
    def quick(cls) -> Self:
        return cls(scale=1 / 4, levels=("50%",), every=4)

    @property
    def as_published(self) -> bool:
        return super().as_published and (self.every, self.given) == (1, ())

    @cached_property
    def applications(self) -> dict[Application, str]:
        """Every application's workload, at its suite's own size."""
        from tidegate.workloads import suites

        if self.given:
            return {Application(suite, name): spec for suite, name, spec in self.given}
        published = {
            Application(suite, m.name.removeprefix(f"{suite}-")): m.name
            for suite in SUITES
            if suite in suites.suites()
            for m in suites.members(suite)[:: self.every]
        }
        modelled = {Application("openmp", n): f"openmp-{n}" for n in _OPENMP[:: self.every]}
        files = sorted(Path(self.recorded).glob("*.parquet")) if self.recorded else []
        return published | modelled | {Application("recorded", f.stem): str(f) for f in files}

    def changed(self) -> Iterator[tuple[str, str, float]]:
        """Yield each constant of tide with half and double its value: part, name and value."""
        for part, constants in CONSTANTS.items():
            for name, default in constants.items():
                for factor in (0.5, 2):
                    yield part, name, type(default)(default * factor)

    def share(self, at: Application) -> float | None:
        """Return the share of an application's size that is run; None for all of it as it is."""
        if self.given or at.suite == "recorded":
            return None
        return SUITES[at.suite].share * self.scale

    def describe(self) -> str:
        count = Counter(at.suite for at in self.applications)
        suites = ", ".join(
            f"{count[name]} of {name} at 1/{1 / (suite.share * self.scale):g}"
            for name, suite in SUITES.items()
            if name in count
        )
        return (
            f"{len(self.applications)} applications: {suites} of their sizes, with "
            f"{', '.join(self.levels)} more than fits, under tide, uvm and published systems; "
            "tide's eviction alone beside Belady's, with one slot and whole regions; and tide with "
            f"each constant halved and doubled, on one in {TRIED} of those it was developed on."
        )
