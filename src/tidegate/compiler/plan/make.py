"""The plan of a program (trace/plan.py), from its model and the values of its variables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tidegate.compiler.model import FROM, TO, LaunchSite, ProgramModel
from tidegate.trace.plan import Plan, PlannedLaunch, PlannedUse


def make_plan(model: ProgramModel, variables: Mapping[str, int], by_region: bool = False) -> Plan:
    """Return the plan of a program whose variables have these values.

    ``by_region``: use the paper's distances from region to region, not those from launch to launch.
    """
    placeable = {o.name for o in model.placeable()}
    launches = tuple(
        PlannedLaunch(name, _uses(model, launch, placeable, variables, by_region))
        for name, launch in zip(launch_names(model), model.launches, strict=True)
    )
    return Plan(launches, {name: model.global_locality(name) for name in sorted(placeable)})


def launch_names(model: ProgramModel) -> list[str]:
    """Return a name for every launch site: its function, with the line or a number if that is
    ambiguous.
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
    """Return a region's function, which in C++ may contain colons."""
    return region.rpartition(":")[0] or region


def _uses(
    model: ProgramModel,
    launch: LaunchSite,
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
            bool(maps[use.object] & TO),
            bool(maps[use.object] & FROM),
        )
        for use in launch.uses
        if use.object in placeable
    )
