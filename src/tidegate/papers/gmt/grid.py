"""What is run: applications under GMT's placements, HMM and the bound.

A group is a size, or a value of a sweep.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tidegate import units
from tidegate.experiments.settings import TierModel
from tidegate.experiments.specification import RunSpec
from tidegate.options import parse_spec
from tidegate.papers.gmt.setup import BASE, MACHINE, PAGE, TABLE_2, Setup, size_of
from tidegate.papers.results import Key

# misses under way at a time: the machine's 864 over 64, as all sizes, and enough to keep SSD and
# link busy
SLOTS = 16
SWEPT = (BASE, "tier-order", "tier-random", "tier-reuse")  # systems that sweeps run


def grid_of(setup: Setup) -> dict[Key, RunSpec]:
    """Return applications × sizes × systems, and the sweeps."""
    grid = {
        (a, s, size): specify(setup, a, s, size)
        for a in setup.applications
        for size in setup.sizes
        for s in setup.systems
    }
    for group, other in sweep_setups(setup).items():
        size = other.sizes[0]
        for a in setup.applications:
            for s in (s for s in SWEPT if s in setup.systems):
                grid.setdefault((a, s, group), specify(other, a, s, size))
    return grid


def sweep_setups(setup: Setup) -> dict[str, Setup]:
    """Return the setup of every value of a list, by its group."""
    found = {}
    for name in ("factor", "ratio", "near"):
        values = getattr(setup, name)
        if len(values) > 1:
            for value in values:
                changed: dict[str, Any] = {name: (value,)}
                group = size_of(value) if name == "factor" else f"{name} {value}"
                found[group] = replace(setup, **changed)
    return found


def specify(setup: Setup, application: str, system: str, size: str) -> RunSpec:
    """Return one run of the grid."""
    workload, near = _sized(setup, application, size)
    slots = max(SLOTS, round(SLOTS * setup.scale))
    return RunSpec(
        workload,
        MACHINE,
        tiering=system,
        near=near,
        middle=round(near * setup.main("ratio")),
        slots=slots,
        tiers=TierModel(jitter=slots, traits=system == BASE),
    )


def _sized(setup: Setup, application: str, size: str) -> tuple[str, int]:
    """Return the workload, and Tier-1 in bytes."""
    spec, near = setup.applications[application]
    near = units.size(setup.near[0]) if setup.near else near
    if size == TABLE_2:
        return spec, near
    over_near = float(size.split()[1]) * (1 + setup.main("ratio"))
    name, options = parse_spec(spec)
    if not setup.near:
        return spec, max(PAGE, round(units.size(options["bytes"]) / over_near))
    return f"{name}(bytes={round(over_near * near)})", near
