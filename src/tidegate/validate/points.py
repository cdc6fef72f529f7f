"""Points: values that somebody measured on a real card, each with its source and its role.

A set of points is a TOML file: what they have in common, then one table per program.

    [source]
    set = "D"
    machine = "gtx1080-pcie3"
    ...
    [[point]]
    name = "a group of 1 MiB"
    workload = "page-order(order=0+1+2+4+8+16)"
    quantity = "time"
    launch = 6
    value = "156.5us"
    role = "fitted"

``values`` and ``roles`` list those of launches 1, 2, … of one program.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from tidegate import units
from tidegate.errors import TidegateError

_FOLDER = Path(__file__).parent / "points"


class Role(StrEnum):
    """What a measured value was used for."""

    FITTED = "fitted"  # a constant was fitted on it, with others
    READ_OFF = "read off"  # a constant is this value, or a mechanism was seen in it
    TEST = "test"  # nothing was chosen by it


class Quantity(StrEnum):
    """What was measured."""

    TIME = "time"  # ns
    BYTES = "bytes in"
    FAULTS = "faults"  # as the driver fetches them, duplicates included
    COPIES = "copies"  # to near memory
    MOVES = "moves"  # bytes that each launch brings


@dataclass(frozen=True)
class Source:
    """Where and how a set of points was measured. ``near``: what managed data could use."""

    set: str
    machine: str
    driver: str
    host: str
    near: str
    where: str
    note: str = ""


@dataclass(frozen=True)
class Point:
    """One measured value. ``launch``: of that launch alone, counted from 1; 0: of the whole run."""

    source: Source
    name: str
    workload: str
    quantity: Quantity
    role: Role
    measured: float | tuple[int, ...]
    launch: int = 0
    prefetch: str = "tree"
    near: str = ""
    spread: tuple[float, float] | None = None

    @property
    def near_memory(self) -> str:
        """What managed data could use of near memory."""
        return self.near or self.source.near


@functools.cache
def load_points() -> tuple[Point, ...]:
    """Return all points, by set.

    >>> {p.source.machine for p in load_points() if p.source.set == "D"}
    {'gtx1080-pcie3'}
    """
    files = sorted(_FOLDER.glob("*.toml"))
    points = [point for file in files for point in read_points(file)]
    return tuple(sorted(points, key=lambda point: point.source.set))


def read_points(file: Path) -> Iterator[Point]:
    """Yield the points of one file."""
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    source = Source(**table["source"])
    for entry in table["point"]:
        yield from _points(source, dict(entry), file)


def _points(source: Source, entry: dict[str, Any], file: Path) -> Iterator[Point]:
    """Yield the points of one table: one, or one for each launch."""
    quantity = Quantity(entry.pop("quantity"))
    values, roles = entry.pop("values", None), entry.pop("roles", None)
    name, role = entry.pop("name"), entry.pop("role", None)
    if "spread" in entry:
        low, high = (units.duration(text) for text in entry.pop("spread"))
        entry["spread"] = low, high
    if values is None:
        given = entry.pop("moves") if quantity is Quantity.MOVES else entry.pop("value")
        measured = _measured(quantity, given)
        yield Point(source, name, quantity=quantity, role=Role(role), measured=measured, **entry)
        return
    roles = roles or [role] * len(values)
    if len(roles) != len(values):
        raise TidegateError(f"{file.name}: {name} has {len(values)} values, {len(roles)} roles")
    for launch, (value, role) in enumerate(zip(values, roles, strict=True), 1):
        yield Point(
            source,
            f"{name}, pass {launch}",
            quantity=quantity,
            role=Role(role),
            measured=_measured(quantity, value),
            launch=launch,
            **entry,
        )


def _measured(quantity: Quantity, given: Any) -> float | tuple[int, ...]:
    """Return a value in ns, bytes or counts."""
    match quantity:
        case Quantity.TIME:
            return units.duration(given)
        case Quantity.BYTES:
            return float(units.size(given))
        case Quantity.MOVES:
            return tuple(units.size(text) for text in given)
    return float(given)
