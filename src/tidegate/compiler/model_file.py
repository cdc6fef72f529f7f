"""Program models as JSON files, so that analysis and planning may run on different machines."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

from tidegate.compiler.analysis.sizes import Formula
from tidegate.compiler.host_flow import HostFlow, HostLoop
from tidegate.compiler.model import (
    Argument,
    DataObject,
    KernelRegion,
    LaunchSite,
    Note,
    ProgramModel,
    Use,
    Walk,
)
from tidegate.errors import TidegateError
from tidegate.files import write_atomically

FORMAT = 2
"""Increased whenever files written before can no longer be read."""


def save(model: ProgramModel, path: Path) -> None:
    """Write a model to a file, whole or not at all."""
    data = to_data(model)
    data["sha256"] = _checksum(data)
    write_atomically(path, json.dumps(data, indent=1, allow_nan=False) + "\n")


def load(path: Path) -> ProgramModel:
    """Read a model that `save` wrote."""
    give = "give a file that tidegate compile --out wrote"
    try:
        data = json.loads(path.read_text())
    except OSError as error:
        raise TidegateError(f"cannot read {path}: {error.strerror}; {give}") from error
    except ValueError:
        data = None
    try:
        if data["tidegate program model"] != FORMAT:
            again = "make it anew with tidegate compile --out"
            raise TidegateError(f"'{path}' is of another version of Tidegate; {again}")
        kept = data.pop("sha256", None)
        model = from_data(data)
        if kept != _checksum(data):
            raise TidegateError(f"'{path}' is damaged: its checksum does not fit; {give}")
        return model
    except (ValueError, AttributeError, KeyError, TypeError, UnicodeDecodeError):
        raise TidegateError(f"'{path}' is not a program model; {give}") from None


def is_saved_model(path: Path) -> bool:
    """Return whether a file is one that `save` wrote, by its first words."""
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        return b'"tidegate program model"' in file.read(200)


def _checksum(data: dict[str, Any]) -> str:
    text = json.dumps(data, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def to_data(model: ProgramModel) -> dict[str, Any]:
    """Return the model as JSON data. An infinite distance becomes null."""
    return {
        "tidegate program model": FORMAT,
        "source": model.source,
        "objects": [{**vars(o), "bytes": _terms(o.bytes)} for o in model.objects],
        "regions": [vars(r) for r in model.regions],
        "launches": [_launch_data(launch) for launch in model.launches],
        "notes": [vars(note) for note in model.notes],
        "region_distance": [[a, b, _finite(far)] for (a, b), far in model.region_distance.items()],
        "next_launches": model.next_launches,
        "first_launches": model.first_launches,
        "two_copies": [vars(note) for note in model.two_copies],
        "flow": _flow_data(model.flow),
        "unused": [[before, {**vars(o), "bytes": _terms(o.bytes)}] for before, o in model.unused],
    }


def from_data(data: dict[str, Any]) -> ProgramModel:
    """Return the model that `to_data` made this data of."""
    return ProgramModel(
        data["source"],
        tuple(map(_object, data["objects"])),
        tuple(KernelRegion(**{**r, "objects": tuple(r["objects"])}) for r in data["regions"]),
        tuple(_launch(launch) for launch in data["launches"]),
        _flow(data["flow"]),
        tuple(Note(**note) for note in data["notes"]),
        {(a, b): _distance(far) for a, b, far in data["region_distance"]},
        tuple(map(tuple, data["next_launches"])),
        tuple(data["first_launches"]),
        tuple(Note(**note) for note in data["two_copies"]),
        tuple((before, _object(o)) for before, o in data.get("unused", ())),
    )


def _flow_data(flow: HostFlow) -> dict[str, Any]:
    loops = [{**vars(loop), "count": _terms(loop.count)} for loop in flow.loops]
    fixed = {"states": flow.states, "steps": flow.steps, "places": flow.places}
    return {**fixed, "loops": loops, "births": flow.births}


def _flow(data: dict[str, Any]) -> HostFlow:
    return HostFlow(
        data["states"],
        tuple((a, b, p) for a, b, p in data["steps"]),
        tuple(HostLoop(**{**loop, "count": _formula(loop["count"])}) for loop in data["loops"]),
        tuple(data["places"]),
        tuple((name, state) for name, state in data.get("births", ())),
    )


def _launch_data(launch: LaunchSite) -> dict[str, Any]:
    return {
        **vars(launch),
        "arguments": [vars(argument) for argument in launch.arguments],
        "trip_count": _terms(launch.trip_count),
        "uses": [_use_data(use) for use in launch.uses],
    }


def _object(data: dict[str, Any]) -> DataObject:
    read = {"bytes": _formula(data["bytes"]), "calls": tuple(data.get("calls", ()))}
    return DataObject(**{**data, **read})


def _launch(data: dict[str, Any]) -> LaunchSite:
    read = {
        "arguments": tuple(map(_argument, data["arguments"])),
        "trip_count": _formula(data["trip_count"]),
        "uses": tuple(map(_use_from_data, data["uses"])),
        "calls": tuple(data.get("calls", ())),
    }
    return LaunchSite(**{**data, **read})


def _use_data(use: Use) -> dict[str, Any]:
    walks = [
        {**vars(walk), "turns": _terms(walk.turns), "apart": _terms(walk.apart)}
        for walk in use.walks
    ]
    return {**vars(use), "distance": _finite(use.distance), "walks": walks}


def _use_from_data(data: dict[str, Any]) -> Use:
    walks = tuple(map(_walk, data.get("walks", ())))
    return Use(**{**data, "distance": _distance(data["distance"]), "walks": walks})


def _walk(data: dict[str, Any]) -> Walk:
    formulas = {"turns": _formula(data["turns"]), "apart": _formula(data.get("apart"))}
    return Walk(**{**data, **formulas})


def _argument(data: dict[str, Any]) -> Argument:
    through = data["through"] and tuple(data["through"])
    return Argument(**{**data, "objects": tuple(data["objects"]), "through": through})


def _terms(formula: Formula | None) -> list[Any] | None:
    return None if formula is None else [[count, *term] for term, count in formula.terms]


def _formula(terms: list[Any] | None) -> Formula | None:
    return None if terms is None else Formula(tuple((tuple(term), count) for count, *term in terms))


def _finite(distance: float) -> float | None:
    return None if distance == math.inf else distance


def _distance(saved: float | None) -> float:
    return math.inf if saved is None else saved
