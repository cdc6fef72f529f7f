"""What is run: applications under systems, and the runs of Figures 3 and 5."""

from __future__ import annotations

from dataclasses import replace

from tidegate.experiments.specification import RunSpec
from tidegate.reproduce.observuvm.counters import PinnedFar, Probe
from tidegate.reproduce.observuvm.recorder import Recorder
from tidegate.reproduce.observuvm.setup import MACHINE, Setup
from tidegate.reproduce.results import Key

GRID, FIGURE_3, FIGURE_5 = "grid", "Figure 3", "Figure 5"  # groups
# regions of Figure 3
PROBED = (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 384, 448, 512, 768, 1024)


def grid_of(setup: Setup) -> dict[Key, RunSpec]:
    """Return all runs."""
    grid: dict[Key, RunSpec] = {
        (a, s, GRID): specify(setup, spec, s)
        for a, spec in setup.applications.items()
        for s in setup.systems
    }
    for a, spec in setup.applications.items():
        grid[a, "uvm", FIGURE_5] = replace(specify(setup, spec, "uvm"), placement=Recorder())
    return grid | {(p, PinnedFar.name, FIGURE_3): probe(p) for p in PROBED}


def specify(setup: Setup, workload: str, system: str) -> RunSpec:
    """Return one run of an application under a system."""
    return RunSpec(
        workload,
        MACHINE,
        system,
        oversubscribe=setup.oversubscribe,
        samples=setup.samples,
        **setup.counts,
    )


def probe(regions: int) -> RunSpec:
    """Return the run of Figure 3 with so many regions pinned far."""
    return RunSpec(Probe(regions=regions), MACHINE, placement=PinnedFar(), prefetch="none")
