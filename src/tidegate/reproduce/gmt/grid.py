"""What is run: applications under GMT's placements, HMM and the bound. A group is a size."""

from __future__ import annotations

from tidegate import units
from tidegate.experiments.specification import RunSpec
from tidegate.options import parse_spec
from tidegate.reproduce.gmt.setup import BASE, MACHINE, PAGE, TABLE_2, Setup
from tidegate.reproduce.results import Key

# misses under way at a time: the machine's 864 over 64, as all sizes, and enough to keep SSD and
# link busy
SLOTS = 16
# System → tiering policy and service of misses, where these are not the system's own
SERVED = {"hmm-optimistic": ("tier-reuse", "cpu")}  # 3.6: HMM with the hit rates of GMT-Reuse


def grid_of(setup: Setup) -> dict[Key, RunSpec]:
    """Return applications × sizes × systems."""
    return {
        (a, s, size): specify(setup, a, s, size)
        for a in setup.applications
        for size in setup.sizes
        for s in setup.systems
    }


def specify(setup: Setup, application: str, system: str, size: str) -> RunSpec:
    """Return one run of the grid."""
    tiering, service = SERVED.get(system, (system, None))
    workload, near = _sized(setup, application, size)
    return RunSpec(
        workload,
        MACHINE,
        tiering=tiering,
        near=near,
        middle=round(near * setup.ratio),
        slots=max(SLOTS, round(SLOTS * setup.scale)),
        service=service,
        traits=system == BASE,
    )


def _sized(setup: Setup, application: str, size: str) -> tuple[str, int]:
    """Return the workload, and Tier-1 in bytes."""
    spec, near = setup.applications[application]
    near = near if setup.near is None else units.size(setup.near)
    if size == TABLE_2:
        return spec, near
    over_near = float(size.split()[1]) * (1 + setup.ratio)
    name, options = parse_spec(spec)
    if setup.near is None:
        return spec, max(PAGE, round(units.size(options["bytes"]) / over_near))
    return f"{name}(bytes={round(over_near * near)})", near
