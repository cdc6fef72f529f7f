"""The numbers of a model: how often each launch comes, how much it accesses each object, and how
soon the object is used again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tidegate.compiler.analysis.chain import Distances, use_of_object, use_of_region
from tidegate.compiler.analysis.launches import plain_name
from tidegate.compiler.analysis.locality import Accesses, ParameterPath, RegionalLocality
from tidegate.compiler.analysis.sizes import Formula
from tidegate.compiler.analysis.walks import UNKNOWN
from tidegate.compiler.model import Argument, LaunchSite, Note, ProgramModel, Use, Walk

Localities = Mapping[str, Mapping[ParameterPath, Accesses]]
"""Region's name → parameter, or pointer read from it → accesses of an iteration."""


def measure(
    model: ProgramModel, device: RegionalLocality | None, passed: Sequence[Mapping[str, Formula]]
) -> ProgramModel:
    """Return the model with frequencies, localities and distances.

    `passed`: the values that each launch passes its kernel (#0, #1, …). Without the device's IR,
    localities are 0, and a note says so.
    """
    regions = model.regions
    kernels = {r.name: device.accesses(r.kernel, r.parameters) if device else None for r in regions}
    localities: Localities = {name: found or {} for name, found in kernels.items()}
    launches = tuple(
        replace(launch, uses=_uses(launch, localities[launch.region], values))
        for launch, values in zip(model.launches, passed, strict=True)
    )
    absent = [name for name, found in kernels.items() if found is None]
    doubts = dict.fromkeys(_doubts(model, absent, localities, device))
    return with_values(replace(model, launches=launches, notes=(*model.notes, *doubts)), {})


def with_values(model: ProgramModel, values: Mapping[str, int]) -> ProgramModel:
    """Return the model with the frequencies and distances that it has for these values of its
    variables. Loops whose bound has no value turn as often as without it.
    """
    turns = model.flow.turns(values)
    often = model.flow.frequencies(turns)
    first, following = model.flow.next_launches(turns)
    launches = [replace(x, frequency=f) for x, f in zip(model.launches, often, strict=True)]
    distances, far = Distances(following, launches), _to_objects(model, turns, launches)
    launches = [
        replace(x, uses=tuple(replace(use, distance=far[use.object][n]) for use in x.uses))
        for n, x in enumerate(launches)
    ]
    made = replace(model, launches=tuple(launches))
    return replace(
        made,
        region_distance=_between_regions(made, distances),
        next_launches=tuple(map(tuple, following.tolist())),
        first_launches=tuple(first.tolist()),
    )


def _to_objects(
    model: ProgramModel, turns: list[float], launches: list[LaunchSite]
) -> dict[str, list[float]]:
    """Return the distances from each launch to every object's next use."""
    distances = Distances(model.flow.next_events(turns), launches)
    ends: dict[str, list[int]] = {}
    for n, (name, _) in enumerate(model.flow.births, len(launches)):
        ends.setdefault(name, []).append(n)
    return {
        o.name: distances.to(use_of_object(o.name), ends.get(o.name, ())) for o in model.objects
    }


def _doubts(
    model: ProgramModel, absent: list[str], localities: Localities, device: RegionalLocality | None
) -> Iterator[Note]:
    """Yield what the device's IR does not show."""
    for name in absent:
        text = "its kernel is not in the device's IR; its localities are taken as 0"
        yield Note(name, f"{text} and its objects as densely used")
    for launch in model.launches:
        yield from _unmapped(launch, localities[launch.region])
    for region in model.regions:
        for name in device.globals_of(region.kernel) if device else ():
            called = plain_name(name)
            text = f"uses the global {called} by its name (declare target), not as an argument"
            if device is not None and device.space(name) == "constant":
                text = f"reads {called} from constant memory, which cannot be placed"
            yield Note(region.name, f"{text}; it is left out")


def _unmapped(launch: LaunchSite, found: Mapping[ParameterPath, Accesses]) -> Iterator[Note]:
    """Yield a note for accesses through pointers that a kernel reads itself and no argument maps,
    such as rows of a ``float **``.
    """
    mapped = {argument.through for argument in launch.arguments}
    followed = {path[0] for path in found if path[1:] not in ((), ("",)) and path not in mapped}
    for first in sorted(followed, key=repr):
        if isinstance(first, str):
            names = [plain_name(first)]
        else:
            names = [name for a in launch.arguments if a.parameter == first for name in a.objects]
        if names:
            text = f"follows pointers that it reads from {' or '.join(names)}"
            yield Note(launch.region, f"{text}; what they point to is left out")


def _uses(
    launch: LaunchSite, found: Mapping[ParameterPath, Accesses], passed: Mapping[str, Formula]
) -> tuple[Use, ...]:
    uses = []
    for name in launch.objects:
        total = sum((_share(argument, name, found) for argument in launch.arguments), Accesses())
        total = _with_known_turns(total, passed)
        own, common, walks = total.bytes, total.common_bytes, tuple(_walks(total, passed))
        uses.append(Use(name, total.accesses, own, math.inf, common, total.writes, walks))
    return tuple(uses)


def _with_known_turns(total: Accesses, passed: Mapping[str, Formula]) -> Accesses:
    """Return accesses in which walks whose turns are a number count in full, not as estimated."""
    accesses, own, common = total.accesses, total.bytes, total.common_bytes
    walks = []
    for place, walk in total.walks:
        turns = walk.turns.with_formulas(passed) or UNKNOWN
        if not turns.variables():
            more = walk.each * max(1, turns.at({})) - walk.bytes
            accesses += more / walk.width
            own, common = own + more * (not walk.common), common + more * walk.common
            walk = replace(walk, bytes=walk.bytes + more)
        walks.append((place, walk))
    return Accesses(accesses, own, common, total.writes, tuple(walks))


def _walks(total: Accesses, passed: Mapping[str, Formula]) -> Iterator[Walk]:
    """Yield the walks with the values that the host passes, those of one kind together."""
    fields: dict[tuple[str, Walk], list[Walk]] = {}
    for place, walk in total.walks:
        apart = walk.apart and (walk.apart.with_formulas(passed) or UNKNOWN)
        turns = walk.turns.with_formulas(passed) or UNKNOWN
        kind = replace(walk, turns=turns, apart=apart, each=0.0, bytes=0.0, width=0.0)
        fields.setdefault((place, kind), []).append(walk)
    alike: dict[Walk, list[Walk]] = {}
    for (_, kind), walks in fields.items():
        # fields of one structure are one access of all their bytes
        each, often = sum(x.each for x in walks), max(x.each / x.width for x in walks)
        width = round(each / often, 3) if often else walks[0].width
        whole = replace(kind, each=each, bytes=sum(x.bytes for x in walks))
        alike.setdefault(replace(kind, width=width), []).append(whole)
    for kind, walks in alike.items():
        each, estimated = sum(x.each for x in walks), sum(x.bytes for x in walks)
        yield replace(kind, each=each, bytes=estimated)


def _share(argument: Argument, name: str, found: Mapping[ParameterPath, Accesses]) -> Accesses:
    """Return an argument's accesses to an object: all of them, or an equal share if it may be one
    of several objects.
    """
    path: ParameterPath | None = argument.through
    if argument.parameter is not None:
        path = (argument.parameter,)
    if name not in argument.objects or path is None:
        return Accesses()
    return found.get(path, Accesses()).times(1 / len(argument.objects))


def _between_regions(model: ProgramModel, distances: Distances) -> dict[tuple[str, str], float]:
    """Return the paper's distances from region to region; of a region that several places launch,
    their mean by frequency.
    """
    between = {}
    for target in model.regions:
        far = list(zip(model.launches, distances.to(use_of_region(target.name)), strict=True))
        for source in model.regions:
            own = ((site.frequency, d) for site, d in far if site.region == source.name)
            reached = [(often, d) for often, d in own if d != math.inf]
            weight = sum(often for often, _ in reached)
            mean = sum(o * d for o, d in reached) / weight if weight else math.inf
            between[source.name, target.name] = mean
    return between
