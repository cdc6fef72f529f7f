"""Plan: what placement policies are told of a program, as plain data. A compiler makes it; a trace carries it.

    ProgramModel + the values of its variables ──▶ make_plan ──▶ Plan ──▶ memory.plan, which a policy reads at each launch

A plan says nothing of any memory's size: what is done where is the policy's business.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from tidegate.compiler.model import Launch, ProgramModel

_TO, _FROM = 1, 2  # of a map type: OpenMP's to and from


@dataclass(frozen=True)
class PlannedUse:
    """What a launch does with one object, as the compiler estimates it."""

    object: str
    locality: float  # regional locality, RL
    distance: float  # launches until it is used again; infinite when it never is
    density: float | None = None  # bytes accessed over bytes there are; None: the trip count is not known
    copied_in: bool = True  # by the launch's own map clauses
    copied_out: bool = True


@dataclass(frozen=True)
class PlannedLaunch:
    """One place that launches a region; a trace's launches bear its name."""

    name: str
    uses: tuple[PlannedUse, ...]


@dataclass(frozen=True)
class Plan:
    """Every launch's uses, and every object's global locality (equation 1)."""

    launches: tuple[PlannedLaunch, ...]
    global_locality: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def by_name(self) -> dict[str, PlannedLaunch]:
        return {launch.name: launch for launch in self.launches}

    @property
    def digest(self) -> str:
        """Part of what names a run."""
        return hashlib.sha256(repr(asdict(self)).encode()).hexdigest()[:16]

    def to_data(self) -> dict[str, Any]:
        """What JSON can hold; an infinite distance is null there."""
        uses = {
            launch.name: [{**asdict(u), "distance": None if math.isinf(u.distance) else u.distance} for u in launch.uses]
            for launch in self.launches
        }
        return {"launches": uses, "global_locality": dict(self.global_locality)}


def make_plan(model: ProgramModel, variables: Mapping[str, int], by_region: bool = False) -> Plan:
    """The plan of a program whose variables have these values.

    ``by_region`` takes the paper's distances, from region to region, instead of those from launch to launch.
    """
    placeable = {o.name for o in model.placeable()}
    launches = tuple(
        PlannedLaunch(name, _uses(model, launch, placeable, variables, by_region))
        for name, launch in zip(launch_names(model), model.launches, strict=True)
    )
    return Plan(launches, {name: model.global_locality(name) for name in sorted(placeable)})


def launch_names(model: ProgramModel) -> list[str]:
    """A name for every place that launches a region: its function, with the line or a number where that is not enough."""
    functions = Counter(_function(region.name) for region in model.regions)
    places: Counter[str] = Counter()
    names = []
    for launch in model.launches:
        function = _function(launch.region)
        name = function if functions[function] == 1 else launch.region
        places[name] += 1
        names.append(name if places[name] == 1 else f"{name}/{places[name]}")
    return names


def _function(region: str) -> str:
    """A region's function, which in C++ may have colons of its own."""
    return region.rpartition(":")[0] or region


def _uses(
    model: ProgramModel, launch: Launch, placeable: set[str], variables: Mapping[str, int], by_region: bool
) -> tuple[PlannedUse, ...]:
    maps: Counter[str] = Counter()
    for argument in launch.arguments:
        for name in argument.objects:
            maps[name] |= argument.map_type
    return tuple(
        PlannedUse(
            use.object, use.locality, model.nearest_region(launch.region, use.object) if by_region else use.distance,
            model.access_density(launch, use, variables),
            bool(maps[use.object] & _TO), bool(maps[use.object] & _FROM),
        )
        for use in launch.uses if use.object in placeable
    )  # fmt: skip
