"""What is run: applications under GMT's placements, HMM and the bound. A group is a size."""

from __future__ import annotations

from tidegate import units
from tidegate.experiments.tiered import TieredAsk
from tidegate.options import parse_spec
from tidegate.reproduce.gmt.setup import BASE, MACHINE, PAGE, TABLE_2, Setup
from tidegate.reproduce.results import Key

# misses under way at a time: the machine's 864 over 64, as all sizes, and enough to keep SSD and
# link busy
SLOTS = 16
# System → placement and who serves misses, where that is not the system's name and its own way
SERVED = {"hmm-optimistic": ("tier-reuse", "cpu")}  # 3.6: HMM with the hit rates of GMT-Reuse


def grid_of(setup: Setup) -> dict[Key, TieredAsk]:
    """Return applications × sizes × systems."""
    return {
        (a, s, size): specify(setup, a, s, size)
        for a in setup.applications
        for size in setup.sizes
        for s in setup.systems
    }


def specify(setup: Setup, application: str, system: str, size: str) -> TieredAsk:
    """Return one run of the grid."""
    placement, service = SERVED.get(system, (system, None))
    spec, near = _sized(setup, application, size)
    return TieredAsk(
        spec,
        placement,
        near,
        round(near * setup.ratio),
        machine=MACHINE,
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
