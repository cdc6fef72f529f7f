"""Numbers put to a model: how often each launch comes, what it does to each object, how soon the
object is used again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tidegate.compiler.analysis.distances import Distances, use_of_object, use_of_region
from tidegate.compiler.analysis.flow import Flow
from tidegate.compiler.analysis.locality import Path, RegionalLocality, Touched
from tidegate.compiler.model import Argument, Launch, Note, ProgramModel, Use

Localities = Mapping[str, Mapping[Path, Touched]]
"""Region → parameter, or what is read from it → what an iteration does to it."""


def measured(model: ProgramModel, flow: Flow, device: RegionalLocality | None) -> ProgramModel:
    """The model with frequencies, localities and distances; without the device's IR, localities are
    0 and a note says so.
    """
    found = {
        r.name: device.of(r.kernel, r.parameters) if device is not None else None
        for r in model.regions
    }
    absent = "its kernel is not in the device's IR; its localities are taken as 0 and its objects as densely used"
    missing = [Note(name, absent) for name, touched in found.items() if touched is None]
    localities: Localities = {name: touched or {} for name, touched in found.items()}
    missing += [
        note for launch in model.launches for note in _unmapped(launch, localities[launch.region])
    ]
    missing += [
        Note(
            r.name,
            f"uses the global {name} by its name (declare target), not as an argument; it is left out",
        )
        for r in model.regions
        if device is not None
        for name in device.globals_of(r.kernel)
    ]
    distances = Distances(flow, model.launches)
    far = {o.name: distances.to(use_of_object(o.name)) for o in model.objects}
    launches = tuple(
        replace(
            launch,
            frequency=flow.frequency[launch.block],
            uses=_uses(launch, localities[launch.region], far, n),
        )
        for n, launch in enumerate(model.launches)
    )
    measured_launches = replace(
        model, launches=launches, notes=(*model.notes, *dict.fromkeys(missing))
    )
    between = _between_regions(measured_launches, distances)
    return replace(
        measured_launches,
        region_distance=between,
        next_launches=tuple(map(tuple, distances.next.tolist())),
    )


def _unmapped(launch: Launch, touched: Mapping[Path, Touched]) -> Iterator[Note]:
    """What a kernel reaches through pointers that it reads itself, as rows of a ``float **``, and
    no argument says.
    """
    mapped = {argument.through for argument in launch.arguments}
    for parameter in sorted({path[0] for path in touched if len(path) > 1 and path not in mapped}):
        names = [name for a in launch.arguments if a.parameter == parameter for name in a.objects]
        if names:
            text = f"follows pointers that it reads from {' or '.join(names)}; what they point to is left out"
            yield Note(launch.region, text)


def _uses(
    launch: Launch, touched: Mapping[Path, Touched], far: Mapping[str, list[float]], n: int
) -> tuple[Use, ...]:
    uses = []
    for name in launch.objects:
        total = sum((_share(argument, name, touched) for argument in launch.arguments), Touched())
        uses.append(Use(name, total.accesses, total.bytes, far[name][n]))
    return tuple(uses)


def _share(argument: Argument, name: str, touched: Mapping[Path, Touched]) -> Touched:
    """What an argument contributes to an object: all of it, or an equal share where it may be one
    of several objects.
    """
    path: Path | None = (
        (argument.parameter,) if argument.parameter is not None else argument.through
    )
    if name not in argument.objects or path is None:
        return Touched()
    whole = touched.get(path, Touched())
    return Touched(whole.accesses / len(argument.objects), whole.bytes / len(argument.objects))


def _between_regions(model: ProgramModel, distances: Distances) -> dict[tuple[str, str], float]:
    """The paper's region-to-region distances; where several places launch a region, their mean by
    frequency.
    """
    between = {}
    for target in model.regions:
        far = distances.to(use_of_region(target.name))
        for source in model.regions:
            each = [
                (x.frequency, d)
                for x, d in zip(model.launches, far, strict=True)
                if x.region == source.name
            ]
            reached = [(often, d) for often, d in each if d != math.inf]
            weight = sum(often for often, _ in reached)
            between[source.name, target.name] = (
                sum(o * d for o, d in reached) / weight if weight else math.inf
            )
    return between
