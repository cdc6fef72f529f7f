"""Make the plan of a program: its model and the values of its variables, as a Plan (trace/plan.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tidegate.compiler.model import Launch, ProgramModel
from tidegate.trace.plan import Plan, PlannedLaunch, PlannedUse

_TO, _FROM = 1, 2  # of a map type: OpenMP's to and from


def make_plan(model: ProgramModel, variables: Mapping[str, int], by_region: bool = False) -> Plan:
    """The plan of a program whose variables have these values.

    ``by_region`` takes the paper's distances, from region to region, instead of those from launch
    to launch.
    """
    placeable = {o.name for o in model.placeable()}
    launches = tuple(
        PlannedLaunch(name, _uses(model, launch, placeable, variables, by_region))
        for name, launch in zip(launch_names(model), model.launches, strict=True)
    )
    return Plan(launches, {name: model.global_locality(name) for name in sorted(placeable)})


def launch_names(model: ProgramModel) -> list[str]:
    """A name for every place that launches a region: its function, with the line or a number where
    that is not enough.
    """
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
    model: ProgramModel,
    launch: Launch,
    placeable: set[str],
    variables: Mapping[str, int],
    by_region: bool,
) -> tuple[PlannedUse, ...]:
    maps: Counter[str] = Counter()
    for argument in launch.arguments:
        for name in argument.objects:
            maps[name] |= argument.map_type
    return tuple(
        PlannedUse(
            use.object,
            use.locality,
            model.nearest_region(launch.region, use.object) if by_region else use.distance,
            model.access_density(launch, use, variables),
            bool(maps[use.object] & _TO),
            bool(maps[use.object] & _FROM),
        )
        for use in launch.uses
        if use.object in placeable
    )
