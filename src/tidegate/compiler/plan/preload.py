"""The plan of a schedule as JSON, for a library that carries it out in an unmodified CUDA program.

``preload.c`` is the library; it reads this one form. It knows allocations by their order and sizes,
and launches by their order and kernels.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files

from tidegate.compiler.model import DataObject, ProgramModel
from tidegate.compiler.plan.schedule import Action, Schedule, launch_names, settled
from tidegate.errors import TidegateError

FORMAT = 1
MOST_LAUNCHES = 2000
"""Launches of a rehearsal: if there are more, the last ones must repeat themselves."""

_SEEN = ("cudaMalloc", "cudaMallocManaged", "cudaMallocAsync")  # by the library


def preload_files(schedule: Schedule, model: ProgramModel) -> dict[str, str]:
    """Return the library's source and the plan, by the endings of their files' names."""
    if not any(o.allocator in _SEEN for o in model.objects):
        raise TidegateError(
            f"--emit preload needs a CUDA source whose kernels use memory of "
            f"{', '.join(_SEEN[:-1])} or {_SEEN[-1]}, got {model.source}; "
            "for OpenMP give --emit openmp"
        )
    source = files("tidegate.compiler.plan").joinpath("preload.c").read_text("utf-8")
    return {".plan.json": _plan(schedule, model), ".preload.c": source}


def _plan(schedule: Schedule, model: ProgramModel) -> str:
    values = dict(schedule.variables)
    kernels = {region.name: region.kernel for region in model.regions}
    kernel = {
        name: kernels[launch.region]
        for name, launch in zip(launch_names(model), model.launches, strict=True)
    }
    run = [(kernel[schedule.places[at].name], actions) for at, actions in schedule.runs[0]]
    sizes: dict[str, int] = {}
    for o in _allocations(model):
        if o.bytes is not None and o.bytes.variables() <= values.keys():
            name = o.name if o.name not in sizes else f"{o.name}.{len(sizes)}"
            sizes[name] = max(1, o.bytes.at(values))
    sized = ", ".join(f"{name} = {value}" for name, value in schedule.variables)
    about = f"{model.source} with {sized or 'no variables'}; never run on a GPU"
    return plan_text(about, sizes, run)


def _allocations(model: ProgramModel) -> Iterator[DataObject]:
    """Yield the allocations that the library sees, used by launches or not, in their order."""
    placed = [
        *((n, 1, o) for n, o in enumerate(model.objects)),
        *((n, 0, o) for n, o in model.unused),
    ]
    for _, _, o in sorted(placed, key=lambda each: each[:2]):
        if o.allocator in _SEEN:
            yield o


def plan_text(
    about: str, sizes: Mapping[str, int], run: Sequence[tuple[str, Iterable[Action]]]
) -> str:
    """Return a plan: bytes of objects in the order of their allocation, and for each launch its
    kernel and the requests before it.

    Discards are left out, as no request of a plan may change what the program computes.
    """
    number = {name: n for n, name in enumerate(sizes)}
    launches = [
        {
            "kernel": kernel,
            "requests": [
                [a.verb, number[a.object], a.first, a.end]
                for a in actions
                if a.object in number and a.verb != "discard"
            ],
        }
        for kernel, actions in run
    ]
    start, period = settled(launches)
    named = [{"name": name, "bytes": size} for name, size in sizes.items()]
    return (
        f'{{"tidegate preload": {FORMAT},\n "about": {json.dumps(about)},\n'
        f' "objects": {_lines(named)},\n "launches": {_lines(launches[: start + period])},\n'
        f' "again": {period}}}\n'
    )


def _lines(rows: Iterable[object]) -> str:
    """Return a JSON list, each of its elements on a line."""
    return "[" + ",".join(f"\n  {json.dumps(row)}" for row in rows) + "]"
