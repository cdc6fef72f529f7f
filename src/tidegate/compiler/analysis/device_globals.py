"""Globals of the GPU that a CUDA kernel uses by name: they are operands of its launches as much as
its parameters are.

An array (`__device__`, `__managed__`) is an object. So is what a pointer in a global points to,
which the host has put there (`cudaMemcpyToSymbol`). Constant memory cannot be placed.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace

from tidegate.compiler.analysis.launches import DecodedLaunch, MapEntry
from tidegate.compiler.analysis.locality import ParameterPath, RegionalLocality
from tidegate.compiler.analysis.points_to import Origin, PointsTo


def with_globals(
    launch: DecodedLaunch, device: RegionalLocality, points: PointsTo, arrays: Container[str]
) -> DecodedLaunch:
    """Return a launch of CUDA with an entry for each global that its kernel uses, if that is one of
    the `arrays` or holds a pointer.
    """
    if not launch.of_cuda:
        return launch
    found = device.accesses(launch.kernel, launch.parameters) or {}
    paths = sorted((path for path in found if isinstance(path[0], str)), key=repr)
    entries = [entry for path in paths for entry in _entries(path, device, points, arrays)]
    return replace(launch, entries=(*launch.entries, *entries))


def _entries(
    path: ParameterPath, device: RegionalLocality, points: PointsTo, arrays: Container[str]
) -> Iterator[MapEntry]:
    symbol, *more = path
    own = Origin("global", str(symbol))
    if more == [""]:
        if device.space(own.name) == "device" and own.name in arrays:
            yield MapEntry(frozenset({own}), None, 0, (own.name, ""))
    elif len(more) == 1:
        at = more[0] if isinstance(more[0], int) and more[0] >= 0 else None
        held = {origin for origin, _ in points.at((own, at)) if origin.kind != "unknown"}
        if held:
            yield MapEntry(frozenset(held), None, 0, (own.name, more[0]))
