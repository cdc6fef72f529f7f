"""What is run: applications under systems, and the runs of Figures 3 and 5."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tidegate.experiments.specification import RunSpec
from tidegate.papers.observuvm.locality import Recorder
from tidegate.papers.observuvm.saturation import PinnedFar, Probe
from tidegate.papers.observuvm.setup import MACHINE, Setup
from tidegate.papers.results import Key

GRID, FIGURE_3, FIGURE_5 = "grid", "Figure 3", "Figure 5"  # groups
SWEPT = ("uvm", "tm", "tm++")  # systems that are run with other values too
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
    grid |= {(p, PinnedFar.name, FIGURE_3): probe(p) for p in PROBED}
    for name, values in setup.swept().items():
        for value in values:
            changed: dict[str, Any] = {name: (value,)}
            other = replace(setup, **changed)
            for a, spec in setup.applications.items():
                for s in (s for s in SWEPT if s in setup.systems):
                    grid[a, s, sweep_group(name, value)] = specify(other, spec, s)
    return grid


def sweep_group(name: str, value: Any) -> str:
    """Return the group of the runs with another value of a swept option."""
    return f"{name} {value}"


def specify(setup: Setup, workload: str, system: str) -> RunSpec:
    """Return one run of an application under a system."""
    run = RunSpec(workload, MACHINE, system, oversubscribe=setup.main("oversubscribe"))
    return run.change(samples=setup.main("samples"), **setup.counts)


def probe(regions: int) -> RunSpec:
    """Return the run of Figure 3 with so many regions pinned far."""
    return RunSpec(Probe(regions=regions), MACHINE, placement=PinnedFar(), prefetch="none")
