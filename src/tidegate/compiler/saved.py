"""A ProgramModel as a JSON file, and back: analysis and planning may be on different machines."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from tidegate.compiler.analysis.sizes import Formula
from tidegate.compiler.model import Argument, DataObject, Launch, Note, ProgramModel, Region, Use
from tidegate.errors import TidegateError
from tidegate.files import write_atomically

FORMAT = 1
"""Grows when a file written before could no longer be read."""


def save(model: ProgramModel, path: Path) -> None:
    """Write a model; the file is as it was, or whole."""
    write_atomically(path, json.dumps(to_data(model), indent=1, allow_nan=False) + "\n")


def load(path: Path) -> ProgramModel:
    """Read a model that `save` wrote."""
    try:
        data = json.loads(path.read_text())
    except OSError as error:
        raise TidegateError(
            f"cannot read {path}: {error.strerror}; give a file that tidegate compile --save wrote"
        ) from error
    except ValueError:
        data = None
    try:
        if data["tidegate program model"] != FORMAT:
            raise TidegateError(
                f"'{path}' is of another version of Tidegate; make it anew with tidegate compile --save"
            )
        return from_data(data)
    except (ValueError, KeyError, TypeError, UnicodeDecodeError):
        raise TidegateError(
            f"'{path}' is not a program model; give a file that tidegate compile --save wrote"
        ) from None


def to_data(model: ProgramModel) -> dict[str, Any]:
    """What JSON can hold; an infinite distance is null there."""
    return {
        "tidegate program model": FORMAT,
        "source": model.source,
        "objects": [{**vars(o), "bytes": _terms(o.bytes)} for o in model.objects],
        "regions": [vars(r) for r in model.regions],
        "launches": [_launch_data(launch) for launch in model.launches],
        "notes": [vars(note) for note in model.notes],
        "region_distance": [[a, b, _finite(far)] for (a, b), far in model.region_distance.items()],
        "next_launches": model.next_launches,
    }


def from_data(data: dict[str, Any]) -> ProgramModel:
    """The model that `to_data` took apart."""
    return ProgramModel(
        data["source"],
        tuple(DataObject(**{**o, "bytes": _formula(o["bytes"])}) for o in data["objects"]),
        tuple(Region(**{**r, "objects": tuple(r["objects"])}) for r in data["regions"]),
        tuple(_launch(launch) for launch in data["launches"]),
        tuple(Note(**note) for note in data["notes"]),
        {(a, b): _distance(far) for a, b, far in data["region_distance"]},
        tuple(map(tuple, data["next_launches"])),
    )


def _launch_data(launch: Launch) -> dict[str, Any]:
    return {
        **vars(launch),
        "arguments": [vars(argument) for argument in launch.arguments],
        "trip_count": _terms(launch.trip_count),
        "uses": [{**vars(use), "distance": _finite(use.distance)} for use in launch.uses],
    }


def _launch(data: dict[str, Any]) -> Launch:
    arguments = tuple(
        Argument(
            **{**a, "objects": tuple(a["objects"]), "through": a["through"] and tuple(a["through"])}
        )
        for a in data["arguments"]
    )
    uses = tuple(Use(**{**use, "distance": _distance(use["distance"])}) for use in data["uses"])
    read = {
        "arguments": arguments,
        "trip_count": _formula(data["trip_count"]),
        "uses": uses,
        "calls": tuple(data.get("calls", ())),
    }
    return Launch(**{**data, **read})


def _terms(formula: Formula | None) -> list[Any] | None:
    return None if formula is None else [[count, *term] for term, count in formula.terms]


def _formula(terms: list[Any] | None) -> Formula | None:
    return None if terms is None else Formula(tuple((tuple(term), count) for count, *term in terms))


def _finite(distance: float) -> float | None:
    return None if distance == math.inf else distance


def _distance(saved: float | None) -> float:
    return math.inf if saved is None else saved
