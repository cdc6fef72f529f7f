"""What is run: eight applications at sizes that fit and sizes that do not, under the paper's schemes."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.errors import TidegateError
from tidegate.experiments.ask import Ask

MACHINE = "v100-nvlink2"
GB = 10**9  # as the machine has 16GB
NEAR = 16  # GB (5.1)
BASE = "um"
APPLICATIONS = ("louvain", "backprop", "bfs", "cfd", "hotspot", "kmeans", "nn", "srad")  # louvain is miniVite's shape
FITTING, LARGER = (4, 9, 14), (19, 25, 31)  # GB; the paper's figure runs from 4 to 31
BFS = (112,)  # Figure 7's largest

# The paper's names, and what they are here. Figure 6 takes RDM apart: reuse distance with one way of transfer, with both,
# and with partial mapping, which is RDM itself.
SCHEMES = {
    "um": "um", "host": "host", "um-pf": "prefetch-all", "lru": "object-lru", "rlm": "rlm", "glm": "glm", "rdm": "rdm",
    "rdm implicit": "rdm(transfer=implicit, partial=no)", "rdm explicit": "rdm(transfer=explicit, partial=no)",
    "rdm whole": "rdm(partial=no)",
}  # fmt: skip
BASELINES = {"baseline": "explicit", "baseline by launch": "explicit(copies=launch)"}  # for what fits
PARTS = ("rdm implicit", "rdm explicit", "rdm whole", "rdm")

QUICK_SCALE = 1 / 32

Key = tuple[str, float, str]  # application, size in the paper's GB, scheme


@dataclass(frozen=True)
class Setup:
    """What can be varied. ``Setup()`` is the paper's own."""

    fitting: tuple[float, ...] = FITTING
    larger: tuple[float, ...] = LARGER
    scale: float = 1.0  # of all sizes, near memory's too
    threshold: float = 0.5  # access density from which objects are prefetched
    readings: int = 0  # combinations of open readings to try
    applications: tuple[str, ...] = APPLICATIONS

    def __post_init__(self) -> None:
        if self.scale <= 0:
            raise TidegateError(f"a scale of {self.scale:g} is none; expected something like 1/8")
        if self.threshold < 0:
            raise TidegateError(f"a density of {self.threshold:g} is none; expected something like 0.5")
        if wrong := [a for a in self.applications if a not in APPLICATIONS]:
            raise TidegateError(f"no application {wrong[0]}; expected some of {', '.join(APPLICATIONS)}")
        if not self.applications or not (self.fitting or self.larger):
            raise TidegateError("nothing is to be run; give at least one application and one size")
        for size, fits in [(s, True) for s in self.fitting] + [(s, False) for s in self.larger]:
            if not size > 0 or (size < NEAR) != fits:
                raise TidegateError(f"{size:g} GB {'does not fit' if fits else 'is no more than'} {NEAR} GB of near memory")

    @classmethod
    def quick(cls) -> Setup:
        """Everything at a small scale."""
        return cls(scale=QUICK_SCALE)

    @property
    def as_published(self) -> bool:
        return (self.fitting, self.larger, self.scale, self.threshold) == (FITTING, LARGER, 1.0, 0.5)

    def sizes(self, application: str) -> tuple[float, ...]:
        """In the paper's GB."""
        largest = BFS if application == "bfs" and self.larger else ()
        return (*self.fitting, *self.larger, *largest)

    def ask(self, application: str, size: float, scheme: str) -> Ask:
        """One run of the grid."""
        spec = {**SCHEMES, **BASELINES}[scheme]
        if self.threshold != 0.5 and spec.partition("(")[0] in ("rlm", "glm", "rdm"):
            spec = f"{spec[:-1]}, threshold={self.threshold})" if "(" in spec else f"{spec}(threshold={self.threshold})"
        return Ask(
            f"openmp-{application}", MACHINE, "uvm", placement=spec, bytes=round(size * GB * self.scale),
            near=round(NEAR * GB * self.scale), dirty_only=scheme in BASELINES,
        )  # fmt: skip

    def describe(self) -> str:
        """In words, for the report."""
        scale = "" if self.scale == 1 else f", all sizes and near memory at {self.scale:g} of that"
        return (
            f"{len(self.applications)} applications of {', '.join(f'{s:g}' for s in (*self.fitting, *self.larger))} GB (bfs "
            f"also {BFS[0]} GB) on {MACHINE} with {NEAR} GB{scale}, under {len(SCHEMES)} schemes, and what fits under two "
            f"baselines too. Density from which objects are prefetched: {self.threshold:g}."
        )


def grid_of(setup: Setup) -> dict[Key, Ask]:
    """Applications × sizes × schemes."""
    return {
        (a, size, scheme): setup.ask(a, size, scheme)
        for a in setup.applications for size in setup.sizes(a)
        for scheme in (*SCHEMES, *(BASELINES if size < NEAR else ()))
    }  # fmt: skip


def check(setup: Setup) -> None:
    """Look every name and number up before the first run begins."""
    for a in setup.applications:
        setup.ask(a, setup.sizes(a)[0], BASE).prepare()
    for scheme in (*SCHEMES, *BASELINES):
        setup.ask(setup.applications[0], setup.sizes(setup.applications[0])[0], scheme).prepare()
