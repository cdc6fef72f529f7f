"""What is run: applications under systems, at each level.

A group of the grid is a level, or a value of a sweep at a level.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tidegate import units
from tidegate.experiments.specification import RunSpec
from tidegate.papers.cppe.setup import BASE, MACHINE, OWN, PAGE, Setup
from tidegate.papers.results import Key
from tidegate.policies.systems import find_system
from tidegate.trace.geometry import Geometry
from tidegate.workloads.suites import members

KINDS = {member.name.removeprefix("cppe-"): member.kind for member in members("cppe")}
CHUNK = units.size("64KiB")
SWEPT = (BASE, "cppe")  # systems that sweeps run


def grid_of(setup: Setup) -> dict[Key, RunSpec]:
    """Return applications × levels × systems, and the sweeps."""
    grid: dict[Key, RunSpec] = {
        (a, s, level): specify(setup, spec, s, level)
        for a, spec in setup.applications.items()
        for level in setup.levels
        for s in setup.systems
    }
    for name, values in setup.swept().items():
        for value in values:
            changed: dict[str, Any] = {name: (value,)}
            other = replace(setup, **changed)
            for a, spec in setup.applications.items():
                for level in setup.levels:
                    for s in SWEPT:
                        grid[a, s, sweep_group(name, value, level)] = specify(other, spec, s, level)
    return grid


def sweep_group(name: str, value: Any, level: str) -> str:
    """Return the group of the runs with another value of an option, at a level."""
    return f"{name} {value} {level}"


def specify(setup: Setup, workload: str, system: str, level: str) -> RunSpec:
    """Return one run of the grid."""
    return RunSpec(
        workload,
        MACHINE,
        system,
        eviction=setup.mhpe if system in OWN else None,
        prefetch=prefetch_of(setup, system),
        fits=level,
        geometry=geometry_of(setup),
    )


def geometry_of(setup: Setup) -> Geometry:
    """Return pages and chunks."""
    return Geometry.parse(f"{PAGE}/{setup.main('chunk')}")


def prefetch_of(setup: Setup, system: str) -> str | None:
    """Return a prefetcher in place of the system's own, or None.

    The naive prefetcher fetches a chunk, so its blocks follow the size of a chunk.
    """
    own, chunk = find_system(system).prefetch, units.size(setup.main("chunk"))
    if chunk == CHUNK or own not in ("sequential-local", "stop-when-full"):
        return None
    block = f"sequential-local(block={chunk})"
    return block if own == "sequential-local" else f"stop-when-full(of={block})"
