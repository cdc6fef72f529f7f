"""Read what probe.cu printed: rows of CSV, and lines about the card.

    # card=NVIDIA GeForce RTX 5070 Ti
    kind,bytes,near,detail,launch,repeat,ns
    copy-in,4096,0,,0,1,2140
    sparse,1610612736,2147483648,8,1,1,26082300

Repeats of one measurement become a median and a spread. Outputs of several runs on one card may be
in one file, one behind the other.
"""

from __future__ import annotations

import csv
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tidegate import units
from tidegate.errors import TidegateError
from tidegate.validate.points import Role

SOURCE = Path(__file__).parent / "probe.cu"
"""The CUDA program."""

COPIES = ("copy-in", "copy-out", "copy-both")
ESSENTIAL = ("copy-in", "copy-out")
"""Without these no machine is fitted."""

COLUMNS = ("kind", "bytes", "near", "detail", "launch", "repeat", "ns")

_PROGRAMS = {
    "page-order": ("page-order(bytes={bytes}, order={detail})", Role.FITTED),
    "sparse": ("sparse(bytes={bytes}, pages={detail}, passes={launches})", Role.FITTED),
    "sequence": ("sequence(bytes={bytes}, passes={launches})", Role.FITTED),
    "triad": ("triad(bytes={bytes})", Role.TEST),
    "stencil": ("tiled-stencil(bytes={bytes}, iterations={detail})", Role.TEST),
}
_EXPECTED = (  # what a whole probe has, as ``Measured.label`` says it
    *COPIES,
    "page-order",
    "sparse K=1 in memory",
    "sparse K=8 in memory",
    "sparse K=512 in memory",
    "sparse K=1 over memory",
    "sparse K=64 over memory",
    "sequence over memory",
    "triad",
    "stencil",
)
_SAME = ("card", "driver", "host")  # what must not differ within one file
_OUTLIER = 5.0  # standard deviations, by the median of absolute deviations
_DEVIATION = 1.4826  # a normal distribution's standard deviation over that median
_NEVER_OUTLIER = 0.1  # share of the median: timers and clocks vary by less
_UNSTEADY = 0.25  # relative spread of which the user is told
_BEST_KNOWN = 0.005  # relative error of a median, at the least


@dataclass(frozen=True)
class Program:
    """One program of the probe, as it was run: all its launches, in near memory of one size."""

    kind: str
    bytes: int
    near: int
    detail: str

    @property
    def label(self) -> str:
        """Return what messages call it."""
        where = "over memory" if self.bytes > self.near else "in memory"
        match self.kind:
            case "sparse":
                return f"sparse K={self.detail} {where}"
            case "sequence":
                return f"sequence {where}"
        return self.kind

    @property
    def title(self) -> str:
        """Return the label with the size."""
        return f"{self.label}, {units.show_size(self.bytes)}"

    @property
    def role(self) -> Role:
        """Return whether constants are fitted on it."""
        return Role.FITTED if self.kind in COPIES else _PROGRAMS[self.kind][1]

    def workload(self, launches: int) -> str:
        """Return the workload that is the same program, of so many launches."""
        text, _ = _PROGRAMS[self.kind]
        return text.format(bytes=self.bytes, detail=self.detail, launches=launches)


@dataclass(frozen=True)
class Measured:
    """The time of a program's launch, in ns: a median, and its relative standard error.

    ``launch`` is counted from 1; 0: of all launches.
    """

    program: Program
    launch: int
    ns: float
    error: float


@dataclass(frozen=True)
class Probe:
    """What probe.cu found. ``notes``: what was left out, and what is missing."""

    card: dict[str, str]
    measured: tuple[Measured, ...]
    notes: tuple[str, ...]

    def of(self, *kinds: str) -> list[Measured]:
        """Return the measurements of programs of these kinds."""
        return [m for m in self.measured if m.program.kind in kinds]

    @property
    def driver(self) -> str:
        """Return the version of the kernel module, or CUDA's where that is not known."""
        version = re.search(r"\d+(\.\d+)+", self.card.get("driver", ""))
        return version[0] if version else f"of CUDA {self.card.get('cuda', '(unknown)')}"

    def number(self, name: str) -> int:
        """Return a whole number of the card's properties; 0 if it is not known."""
        text = self.card.get(name, "")
        return int(text) if text.isdecimal() else 0


def read_probe(path: Path) -> Probe:
    """Return what a file of the probe's output says.

    Raise TidegateError for a file that is none, that mixes cards or drivers, or lacks copies.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise TidegateError(f"{path} must be the output of probe.cu, got a binary file") from None
    card = _card([line for line in lines if line.startswith("#")], path)
    times = _times([(n, line) for n, line in enumerate(lines, 1) if not line.startswith("#")], path)
    measured, notes = [], []
    for (program, launch), found in times.items():
        one, said = _settle(program, launch, found)
        measured.append(one)
        notes += said
    missing = _missing(measured)
    if wanted := [name for name in missing if name in ESSENTIAL]:
        raise TidegateError(
            f"{path} has no rows {', '.join(wanted)}, without which nothing can be fitted; "
            "run the probe to its end and give its whole output"
        )
    if missing:
        notes.append(f"missing: {', '.join(missing)}")
    return Probe(card, tuple(measured), tuple(notes))


def _card(lines: Sequence[str], path: Path) -> dict[str, str]:
    """Return the properties of the card; those of a file's several runs must agree."""
    card: dict[str, str] = {}
    for line in lines:
        name, _, value = line.lstrip("# ").partition("=")
        if name in _SAME and card.get(name, value) != value:
            raise TidegateError(
                f"{path} must be of one {name}, got '{card[name]}' and '{value}'; "
                "calibrate each for itself"
            )
        card[name] = value
    if "tidegate probe" not in card or "card" not in card:
        raise TidegateError(
            f"{path} must be the output of probe.cu, whose first lines name the card; "
            "`tidegate calibrate --emit probe.cu` writes the program"
        )
    if card["tidegate probe"] != "1":
        raise TidegateError(
            f"{path} is of version {card['tidegate probe']} of the probe, expected 1; "
            "write the program anew: tidegate calibrate --emit probe.cu"
        )
    return card


def _times(
    lines: Sequence[tuple[int, str]], path: Path
) -> dict[tuple[Program, int], list[tuple[str, float]]]:
    """Return the times of each launch, with the repeats they are of."""
    times: dict[tuple[Program, int], list[tuple[str, float]]] = defaultdict(list)
    for (number, _), row in zip(lines, csv.reader(text for _, text in lines), strict=True):
        if not row or tuple(row) == COLUMNS:
            continue
        try:
            kind, size, near, detail, launch, repeat, ns = row
            program = Program(kind, int(size), int(near), detail)
            program.role, program.workload(1) if kind not in COPIES else ""
            time, place = float(ns), int(launch)
            if not (0 < time < math.inf and program.bytes > 0 and place >= 0):
                raise ValueError
        except (ValueError, KeyError):
            raise TidegateError(
                f"{path}, line {number}: must be {','.join(COLUMNS)} as probe.cu prints them, "
                f"got '{','.join(row)[:80]}'"
            ) from None
        times[program, place].append((repeat, time))
    return times


def _settle(
    program: Program, launch: int, found: Sequence[tuple[str, float]]
) -> tuple[Measured, list[str]]:
    """Return the median of repeats without outliers, and what there is to say of them."""
    values = np.array([time for _, time in found])
    middle = float(np.median(values))
    off = np.abs(values - middle)
    deviation = _DEVIATION * float(np.median(off))
    kept = off <= max(_OUTLIER * deviation, _NEVER_OUTLIER * middle)
    name = program.title + (f", launch {launch}" if launch else "")
    notes = [
        f"left out as an outlier: {name}, repeat {repeat}: {units.show_duration(time)}, "
        f"median {units.show_duration(middle)}"
        for (repeat, time), keep in zip(found, kept, strict=True)
        if not keep
    ]
    left = values[kept]
    spread = float(np.std(left, ddof=1) / middle) if len(left) > 1 else _UNSTEADY
    if len(left) > 1 and spread > _UNSTEADY:
        notes.append(f"unsteady: {name} varies by {spread:.0%}; was the card in use?")
    error = max(_BEST_KNOWN, spread / math.sqrt(len(left)))
    return Measured(program, launch, float(np.median(left)), error), notes


def _missing(measured: Iterable[Measured]) -> list[str]:
    """Return the labels of what a whole probe has and this one has not."""
    there = {m.program.label for m in measured}
    return [label for label in _EXPECTED if label not in there]
