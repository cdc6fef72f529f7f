"""What is run: eight applications at sizes that fit and sizes that do not, under the paper's
schemes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tidegate.errors import TidegateError
from tidegate.experiments.specification import RunSpec
from tidegate.machine.machine import Machine, load_machine

MACHINE = "v100-nvlink2"
GB = 10**9  # as the machine has 16GB
NEAR = 16  # GB (5.1)
BASE = "um"
# louvain is miniVite's shape
APPLICATIONS = ("louvain", "backprop", "bfs", "cfd", "hotspot", "kmeans", "nn", "srad")
FITTING, LARGER = (4, 9, 14), (19, 25, 31)  # GB; the paper's figure runs from 4 to 31
BFS = (112,)  # Figure 7's largest

# The paper's names, and what they are here. Figure 6 takes RDM apart: reuse distance with one way
# of transfer, with both, and with partial mapping, which is RDM itself.
SCHEMES = {
    "um": "um",
    "host": "host",
    "um-pf": "prefetch-all",
    "lru": "object-lru",
    "rlm": "rlm",
    "glm": "glm",
    "rdm": "rdm",
    "rdm implicit": "rdm(transfer=implicit, partial=no)",
    "rdm explicit": "rdm(transfer=explicit, partial=no)",
    "rdm whole": "rdm(partial=no)",
}
# for what fits
BASELINES = {"baseline": "explicit", "baseline by launch": "explicit(copies=launch)"}
PARTS = ("rdm implicit", "rdm explicit", "rdm whole", "rdm")

DEFAULT_SCALE, QUICK_SCALE = 1 / 32, 1 / 128

Key = tuple[str, float, str]  # application, size in the paper's GB, scheme


# How often the programs loop is not in the paper: as Rodinia runs them (cfd's 2000 iterations cut
# to 100, which are alike), or as often as the examples do by themselves, or longer where Rodinia's
# is short. An option of each workload.
LOOPS: dict[str, dict[str, str]] = {
    "rodinia": {},
    "own": {"cfd": "iterations=20", "srad": "iterations=4", "hotspot": "steps=8"},
    "long": {"hotspot": "steps=60", "kmeans": "rounds=100", "louvain": "rounds=100"},
}


@dataclass(frozen=True)
class Setup:
    """What can be varied. ``Setup(scale=1)`` is the paper's own."""

    fitting: tuple[float, ...] = FITTING
    larger: tuple[float, ...] = LARGER
    scale: float = DEFAULT_SCALE  # of all sizes, near memory's too
    threshold: float = 0.5  # access density from which objects are prefetched
    loops: str = "rodinia"  # how often the programs loop
    distances: str = "launches"  # of reuse: see workloads/openmp/offloaded.py
    # µs per KiB for taking a page from the CPU; by default the machine's
    unmap: float | None = None
    readings: int = 0  # combinations of open readings to try
    applications: tuple[str, ...] = APPLICATIONS
    largest: tuple[float, ...] = BFS  # bfs's, beside the others

    def __post_init__(self) -> None:
        if self.scale <= 0:
            raise TidegateError(f"a scale of {self.scale:g} is none; expected something like 1/8")
        if not 0 <= self.threshold < math.inf:
            raise TidegateError(
                f"a density of {self.threshold:g} is none; expected something like 0.5"
            )
        if wrong := [a for a in self.applications if a not in APPLICATIONS]:
            raise TidegateError(
                f"no application {wrong[0]}; expected some of {', '.join(APPLICATIONS)}"
            )
        if self.loops not in LOOPS:
            raise TidegateError(f"no loops '{self.loops}'; expected one of {', '.join(LOOPS)}")
        if self.unmap is not None and not 0 <= self.unmap < math.inf:
            raise TidegateError(
                f"unmapping cannot take {self.unmap:g} µs per KiB; expected something like 0.15"
            )
        if not self.applications or not (self.fitting or self.larger):
            raise TidegateError("nothing is to be run; give at least one application and one size")
        for size, fits in [(s, True) for s in self.fitting] + [(s, False) for s in self.larger]:
            if not 0 < size < math.inf or (size < NEAR) != fits:
                raise TidegateError(
                    f"{size:g} GB {'does not fit' if fits else 'is no more than'} {NEAR} GB of near memory"
                )

    @classmethod
    def quick(cls) -> Setup:
        """Everything at a small scale, and fewer sizes."""
        return cls(scale=QUICK_SCALE, fitting=(9,), larger=(19, 31), largest=())

    @property
    def as_published(self) -> bool:
        """But for the scale, which keeps all ratios."""
        own = (self.fitting, self.larger, self.threshold, self.loops, self.unmap)
        return own == (FITTING, LARGER, 0.5, "rodinia", None)

    def sizes(self, application: str) -> tuple[float, ...]:
        """In the paper's GB."""
        largest = self.largest if application == "bfs" and self.larger else ()
        return (*self.fitting, *self.larger, *largest)

    def ask(self, application: str, size: float, scheme: str) -> RunSpec:
        """One run of the grid."""
        spec = {**SCHEMES, **BASELINES}[scheme]
        if self.threshold != 0.5 and spec.partition("(")[0] in ("rlm", "glm", "rdm"):
            spec = (
                f"{spec[:-1]}, threshold={self.threshold})"
                if "(" in spec
                else f"{spec}(threshold={self.threshold})"
            )
        return self.ask_spec(application, size, spec)

    def ask_spec(self, application: str, size: float, spec: str, **options: object) -> RunSpec:
        """One run under any placement, of a workload with any options."""
        if self.distances != "launches":
            options["distances"] = self.distances
        given = [f"{k}={v}" for k, v in options.items()] + [
            x for x in [LOOPS[self.loops].get(application)] if x
        ]
        workload = f"openmp-{application}({', '.join(given)})" if given else f"openmp-{application}"
        return RunSpec(
            workload,
            self.machine,
            "uvm",
            placement=spec,
            bytes=round(size * GB * self.scale),
            near=round(NEAR * GB * self.scale),
        )

    @property
    def machine(self) -> str | Machine:
        if self.unmap is None:
            return MACHINE
        given = load_machine(MACHINE)
        return replace(given, driver=replace(given.driver, unmap_per_kib=1000 * self.unmap))

    def describe(self) -> str:
        """In words, for the report."""
        scale = "" if self.scale == 1 else f", all sizes and near memory at {self.scale:g} of that"
        bfs = f" (bfs also {', '.join(f'{s:g}' for s in self.largest)} GB)" if self.largest else ""
        unmap = (
            "" if self.unmap is None else f" Taking a page from the CPU: {self.unmap:g} µs per KiB."
        )
        return (
            f"{len(self.applications)} applications of {', '.join(f'{s:g}' for s in (*self.fitting, *self.larger))} GB{bfs} "
            f"on {MACHINE} with {NEAR} GB{scale}, under {len(SCHEMES)} schemes, and what fits under two "
            f"baselines too. Density from which objects are prefetched: {self.threshold:g}. Loops: {self.loops}.{unmap}"
        )


def grid_of(setup: Setup) -> dict[Key, RunSpec]:
    """Applications × sizes × schemes."""
    return {
        (a, size, scheme): setup.ask(a, size, scheme)
        for a in setup.applications
        for size in setup.sizes(a)
        for scheme in (*SCHEMES, *(BASELINES if size < NEAR else ()))
    }


def check(setup: Setup) -> None:
    """Look every name and number up before the first run begins."""
    for a in setup.applications:
        setup.ask(a, setup.sizes(a)[0], BASE).prepare()
    for scheme in (*SCHEMES, *BASELINES):
        setup.ask(setup.applications[0], setup.sizes(setup.applications[0])[0], scheme).prepare()
