"""The ledger of reality: one row per measured value, with what the simulator says of it.

    validate(card) ──▶ Row: point, simulated, error, within its tolerance? ──▶ Card: mean and worst

A row is judged by its quantity. Fault counts are listed and judged, but are no part of a card's
mean: what a driver counts depends on when it looks.
"""

from __future__ import annotations

import csv
import functools
import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate import units
from tidegate.errors import UnknownName
from tidegate.validate.play import play_programs
from tidegate.validate.points import Point, Quantity, Role, load_points

SAVED = Path(__file__).parent / "ledger.csv"  # as ``tidegate validate --csv`` wrote it

_TIME_IN_MEMORY, _TIME_OVERSUBSCRIBED = 0.25, 0.35
_TOLERANCES = {Quantity.BYTES: 0.01, Quantity.COPIES: 0.01, Quantity.MOVES: 0.0}
_FAULTS = 2.0  # a factor


@dataclass(frozen=True)
class Row:
    """A measured value beside the simulated one."""

    point: Point
    simulated: float | tuple[int, ...]
    oversubscribed: bool

    @property
    def ratio(self) -> float | None:
        """Simulated over measured; None for moves, which are equal or not."""
        measured, simulated = self.point.measured, self.simulated
        if isinstance(measured, tuple) or isinstance(simulated, tuple):
            return None
        return simulated / measured

    @property
    def allowed(self) -> tuple[float, float]:
        """The least and the largest ratio that is within the tolerance."""
        if self.point.quantity is Quantity.FAULTS:
            return 1 / _FAULTS, _FAULTS
        time = _TIME_OVERSUBSCRIBED if self.oversubscribed else _TIME_IN_MEMORY
        tolerance = _TOLERANCES.get(self.point.quantity, time)
        return 1 - tolerance, 1 + tolerance

    @property
    def within(self) -> bool:
        """Whether the simulated value is within the tolerance of its quantity."""
        if self.ratio is None:
            return self.simulated == self.point.measured
        low, high = self.allowed
        return low <= self.ratio <= high

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain data."""
        point, source = self.point, self.point.source
        spread = point.spread and " to ".join(map(units.show_duration, point.spread))
        return {
            "set": source.set,
            "machine": source.machine,
            "driver": source.driver,
            "host": source.host,
            "point": point.name,
            "program": point.workload,
            "prefetch": point.prefetch,
            "near": point.near_memory,
            "quantity": point.quantity.value,
            "role": point.role.value,
            "measured": show_value(point.quantity, point.measured),
            "spread": spread or "",
            "simulated": show_value(point.quantity, self.simulated),
            "ratio": None if self.ratio is None else round(self.ratio, 3),
            "within": self.within,
            "source": source.where,
        }


@dataclass(frozen=True)
class Card:
    """How well a machine file is validated: its test rows, and the ratios of the times among them.

    A card without a time among its test rows has a mean of 1 and nothing that is worst.
    """

    machine: str
    rows: int
    within: int
    mean: float  # geometric, of how many times too slow or too fast
    worst: float

    @property
    def words(self) -> str:
        """What it comes to, in a line."""
        times = f"; times off by {self.mean:.2f} × (geometric mean), {self.worst:.2f} × at most"
        return (
            f"{self.within} of {self.rows} test rows within tolerance"
            f"{times if self.worst > 1 else ''}"
        )


@dataclass(frozen=True)
class Validation:
    """Rows of the ledger."""

    rows: tuple[Row, ...]

    @property
    def machines(self) -> list[str]:
        """The machine files that have rows."""
        return sorted({row.point.source.machine for row in self.rows})

    def of(self, machine: str) -> list[Row]:
        """Return the rows of a machine file."""
        return [row for row in self.rows if row.point.source.machine == machine]

    @property
    def cards(self) -> list[Card]:
        """How well each machine file is validated."""
        return [_card(name, map(_judged, self.of(name))) for name in self.machines]


@dataclass(frozen=True)
class _Judged:
    """What a card's figures need of a row."""

    role: str
    quantity: str
    ratio: float | None
    within: bool


def _judged(row: Row) -> _Judged:
    return _Judged(row.point.role, row.point.quantity, row.ratio, row.within)


def _card(machine: str, rows: Iterable[_Judged]) -> Card:
    tests = [row for row in rows if row.role == Role.TEST]
    times = [r.ratio for r in tests if r.quantity == Quantity.TIME and r.ratio is not None]
    off = [abs(math.log(ratio)) for ratio in times] or [0.0]
    mean, worst = math.exp(sum(off) / len(off)), math.exp(max(off))
    return Card(machine, len(tests), sum(row.within for row in tests), mean, worst)


def validate(
    cards: Sequence[str] = (),
    cache: bool = True,
    progress: Callable[[int], None] = lambda programs: None,
) -> Validation:
    """Play the points of some cards, by default of all; ``progress`` hears of each program.

    >>> [card.within for card in validate(["gtx1080-pcie3"]).cards]
    [5]
    """
    points = points_of(cards)
    rows = []
    for point, value, run in play_programs(points, cache=cache, progress=progress):
        over = run.facts["footprint_bytes"] > run.facts["near_bytes"]
        rows.append(Row(point, value, over))
    return Validation(tuple(rows))


def points_of(cards: Sequence[str]) -> list[Point]:
    """Return the points of some cards, by default of all."""
    points = load_points()
    known = sorted({point.source.machine for point in points})
    for card in cards:
        if card not in known:
            raise UnknownName("card with measured points", card, known)
    return [point for point in points if not cards or point.source.machine in cards]


@functools.cache
def saved_cards() -> dict[str, Card]:
    """Return how well each machine file was validated when the ledger was last saved."""
    rows = saved_rows()
    machines = sorted({row["machine"] for row in rows})
    return {name: _card(name, map(_read, _of(rows, name))) for name in machines}


def saved_rows() -> list[dict[str, str]]:
    """Return the rows of the saved ledger."""
    return list(csv.DictReader(io.StringIO(SAVED.read_text(encoding="utf-8"))))


def _of(rows: Iterable[dict[str, str]], machine: str) -> list[dict[str, str]]:
    return [row for row in rows if row["machine"] == machine]


def _read(row: dict[str, str]) -> _Judged:
    ratio = float(row["ratio"]) if row["ratio"] else None
    return _Judged(row["role"], row["quantity"], ratio, row["within"] == "true")


def show_value(quantity: Quantity, value: float | tuple[int, ...]) -> str:
    """Return the text of a value of this quantity."""
    if isinstance(value, tuple):
        return " ".join(units.show_size(part) for part in value)
    match quantity:
        case Quantity.TIME:
            return units.show_duration(value)
        case Quantity.BYTES:
            return units.show_size(round(value))
    return f"{value:,.0f}"
