"""What can be varied in the reproduction of SC'19."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from tidegate.papers import setup
from tidegate.papers.setup import option, require

MACHINE = "v100-nvlink2"
NEAR = 15.7  # GB that a V100 of 16 GB (5.1) offers: sizes above do not fit
BASE = "um"
# louvain is miniVite's shape
APPLICATIONS = ("louvain", "backprop", "bfs", "cfd", "hotspot", "kmeans", "nn", "srad")
FITTING, LARGER = (4.0, 9.0, 14.0), (19.0, 25.0, 31.0)  # GB; the paper's figure has 4 to 31
BFS = (112.0,)  # Figure 7's largest

# The paper's names, and the placements here. Figure 6 takes RDM apart: reuse distance with one way
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
PARTS = ("rdm implicit", "rdm explicit", "rdm whole", "rdm")
# For sizes that fit: explicit copies as each program's own directives map its objects. Rodinia's
# bfs has a ``target data`` around its loop, cfd and hotspot are one ``target`` each. Of srad, which
# has no directives there, 5.2 says that explicit copies move nothing in vain. The others map at
# each kernel region: so 2.3 says of miniVite, and 5.2 of backprop's and kmeans' traffic.
BASELINE = "baseline"
ONCE, EACH_LAUNCH = "explicit", "explicit(copies=launch)"
MAPPED_ONCE = ("bfs", "cfd", "hotspot", "srad")

DEFAULT_SCALE, QUICK_SCALE = 1 / 32, 1 / 128

# How often the programs loop is not in the paper: as Rodinia runs them (cfd's 2000 iterations cut
# to 100, which are alike), or as often as the examples do by themselves, or longer where Rodinia's
# is short. An option of each workload.
LOOPS: dict[str, dict[str, str]] = {
    "rodinia": {},
    "own": {"cfd": "iterations=20", "srad": "iterations=4", "hotspot": "steps=8"},
    "long": {"hotspot": "steps=60", "kmeans": "rounds=100", "louvain": "rounds=100"},
}


@dataclass(frozen=True)
class Setup(setup.Setup):
    """Compiler-assisted hybrid memory (SC'19): 8 applications of 4 to 112 GB on a GPU of 16 GB,
    under 10 schemes.
    """

    citation: ClassVar[str] = (
        "Compiler Assisted Hybrid Implicit and Explicit GPU Memory Management under Unified "
        "Address Space (SC'19)"
    )
    year: ClassVar[int] = 2019
    example: ClassVar[str] = "--scale 1 --applications cfd --out report.html"
    base: ClassVar[str] = BASE
    tried: ClassVar[int] = 16  # of 2,304

    # Ratios are kept, so claims are made for larger scales, too; in smaller ones objects are a few
    # regions. Most are on means, for which all applications are needed.
    scale: float = option(
        DEFAULT_SCALE, "Of all sizes, near memory's too.", share=True, changes_claims=False
    )
    applications: tuple[str, ...] = option(
        APPLICATIONS, "Some of the eight, with commas.", changes_claims=False
    )
    fitting: tuple[float, ...] = option(FITTING, "Sizes that fit 16 GB, in GB, with commas.")
    larger: tuple[float, ...] = option(LARGER, "Sizes that do not, in GB, with commas.")
    threshold: float = option(0.5, "Density from which objects are prefetched.")
    loops: str = option("rodinia", "How often programs loop: rodinia, own or long.")
    unmap: float | None = option(
        None, "µs per KiB for taking a page from the CPU; the machine's two without it."
    )
    largest: tuple[float, ...] = option(
        BFS,
        "Sizes of bfs beside the others, in GB, with commas; 48,64,80,96,112 are Figure 7's.",
        changes_claims=False,
    )
    distances: str = "launches"  # of reuse: see ``Offloaded``

    def __post_init__(self) -> None:
        super().__post_init__()
        expected = "threshold must be a density from 0 to 1000000, such as 0.5"
        require(0 <= self.threshold <= 1e6, expected, self.threshold)
        for a in self.applications:
            require(a in APPLICATIONS, f"applications must be among {', '.join(APPLICATIONS)}", a)
        require(self.loops in LOOPS, f"loops must be one of {', '.join(LOOPS)}", self.loops)
        if self.unmap is not None:
            expected = "unmap must be µs per KiB, from 0 to 1000000, such as 0.15"
            require(0 <= self.unmap <= 1e6, expected, self.unmap)
        require(bool(self.applications), "applications must name at least one", "none")
        require(bool(self.fitting or self.larger), "at least one size must be given", "none")
        for size in self.fitting:
            require(0 < size < NEAR, f"fitting sizes must be above 0 and below {NEAR} GB", size)
        for name in ("larger", "largest"):
            for size in getattr(self, name):
                require(NEAR <= size <= 1e6, f"{name} sizes must be {NEAR} to 1000000 GB", size)

    @classmethod
    def quick(cls) -> Self:
        return cls(scale=QUICK_SCALE, fitting=(9.0,), larger=(19.0, 31.0), largest=())

    @property
    def as_published(self) -> bool:
        whole = set(self.applications) == set(APPLICATIONS)
        return super().as_published and whole and self.scale >= DEFAULT_SCALE

    def sizes(self, application: str) -> tuple[float, ...]:
        """Return an application's sizes in the paper's GB."""
        largest = self.largest if application == "bfs" and self.larger else ()
        return (*self.fitting, *self.larger, *largest)

    def describe(self) -> str:
        scale = "" if self.scale == 1 else f", all sizes and near memory at {self.scale:g} of that"
        sizes = ", ".join(f"{s:g}" for s in (*self.fitting, *self.larger))
        bfs = f" (bfs also {', '.join(f'{s:g}' for s in self.largest)} GB)" if self.largest else ""
        unmap = (
            f" Taking a page from the CPU: {self.unmap:g} µs per KiB."
            if self.unmap is not None
            else ""
        )
        return (
            f"{len(self.applications)} applications of {sizes} GB{bfs} on {MACHINE} with {NEAR} GB"
            f"{scale}, under {len(SCHEMES)} schemes, and what fits under two baselines too. "
            f"Density from which objects are prefetched: {self.threshold:g}. Loops: {self.loops}."
            f"{unmap}"
        )
