"""What a card did, from Nsight Systems, beside a simulated run of the same program.

    nsys profile --cuda-um-gpu-page-faults=true ./program
    nsys export --type sqlite report.nsys-rep

Copies of managed memory are rows of CUPTI_ACTIVITY_KIND_MEMCPY with copyKind 11 (in) or 12 (out):
start, end, bytes, virtualAddress. Kernels and managed allocations have tables of their own, which
are missing if they would be empty. Both runs begin with their first copy or kernel, and their
objects lie one after another, each on whole regions.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import TidegateError
from tidegate.experiments import Run, RunSpec
from tidegate.simulation.recorded import Recording
from tidegate.trace.importers.faults import Nsight
from tidegate.trace.importers.importer import Allocation

if TYPE_CHECKING:
    from tidegate.trace.geometry import Geometry

_IN, _OUT = 11, 12  # copyKind
_COPIES, _KERNELS = "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_KERNEL"
_HOW = (
    "profile with 'nsys profile --cuda-um-gpu-page-faults=true', then 'nsys export --type sqlite'"
)


@dataclass(frozen=True, eq=False)
class Copies:
    """Copies in the order in which they end: ns from the run's beginning, bytes from the first
    object's beginning.
    """

    end: NDArray[np.float64]
    place: NDArray[np.float64]
    bytes: NDArray[np.float64]
    inward: NDArray[np.bool_]

    def moved(self, inward: bool) -> float:
        """Return the bytes that were copied in, or out."""
        return float(self.bytes[self.inward == inward].sum())


@dataclass(frozen=True, eq=False)
class Beside:
    """One program on a card and in the simulator."""

    file: Path
    run: Run
    card: Copies
    card_time: float  # ns, from the first copy or kernel to the last
    card_copies: int  # inward
    ours: Copies

    def rows(self) -> list[dict[str, Any]]:
        """Return each quantity: the card's, ours and the ratio."""
        pairs = {
            "time, ns": (self.card_time, self.run.time),
            "bytes in": (self.card.moved(True), float(self.run.summary["bytes_in"])),
            "bytes out": (self.card.moved(False), float(self.run.summary["bytes_out"])),
            "copies in": (float(self.card_copies), float(self.run.counts["copies_in"])),
        }
        return [
            {"quantity": name, "card": card, "ours": ours, "ratio": ours / card if card else None}
            for name, (card, ours) in pairs.items()
        ]


def compare(file: Path, spec: RunSpec) -> Beside:
    """Return an export of Nsight Systems beside a simulated run of the same program.

    Raise TidegateError if the file is not such an export, or holds no copies of managed memory.
    """
    begin, end, rows, allocations = _read(file)
    run, recording = spec.record()
    geometry = spec.trace().geometry
    inward = rows[:, 3] == _IN
    place = _places(rows[:, 1], allocations, geometry.region)
    card = Copies(rows[:, 0] - begin, place, rows[:, 2], inward)
    return Beside(file, run, card, end - begin, int(inward.sum()), _simulated(recording, geometry))


def _read(file: Path) -> tuple[float, float, NDArray[np.float64], list[Allocation]]:
    """Return when the run begins and ends, copies (end, address, bytes, kind) and allocations."""
    if not file.is_file():
        raise TidegateError(f"no file {file}; give an SQLite export of Nsight Systems")
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as database:
            rows = _select(
                database,
                _COPIES,
                "end, virtualAddress, bytes, copyKind, start",
                f"copyKind IN ({_IN}, {_OUT}) ORDER BY end",
            )
            kernels = _select(database, _KERNELS, "start, end", "1")
    except sqlite3.Error as error:
        raise TidegateError(
            f"{file} must be an SQLite export of Nsight Systems ({error}); {_HOW}"
        ) from error
    if not rows:
        raise TidegateError(f"{file} holds no copies of managed memory; {_HOW}")
    table = np.array(rows, np.float64)
    begin = min(table[:, 4].min(), *(kernel[0] for kernel in kernels), np.inf)
    end = max(table[:, 0].max(), *(kernel[1] for kernel in kernels), 0)
    return float(begin), float(end), table[:, :4], Nsight(file).allocations()


def _select(database: sqlite3.Connection, table: str, columns: str, where: str) -> list[Any]:
    """Return rows of a table; none if there is no such table."""
    found = database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    if not found:
        return []
    return database.execute(f"SELECT {columns} FROM {table} WHERE {where}").fetchall()


def _places(
    addresses: NDArray[np.float64], allocations: list[Allocation], region: int
) -> NDArray[np.float64]:
    """Return where addresses lie if allocations follow one another, each on whole regions.

    Without allocations they lie as they did, from the first region that was copied.
    """
    if not allocations:
        return addresses - addresses.min() // region * region
    starts = np.array([one.address for one in allocations], np.float64)
    regions = np.array([-(-one.bytes // region) for one in allocations])
    before = np.concatenate([[0], np.cumsum(regions)[:-1]]) * region
    owner = np.clip(np.searchsorted(starts, addresses, side="right") - 1, 0, None)
    return np.asarray(before[owner] + addresses - starts[owner])


def _simulated(recording: Recording, geometry: Geometry) -> Copies:
    """Return what came and left in each bin of a recording, as copies at the bin's end."""
    near = recording.layers["residency"].astype(np.int64)
    change = np.diff(near, axis=0, prepend=0)
    left = np.where(recording.layers["evictions"] > 0, np.maximum(-change, 1), 0)
    parts = [(np.maximum(change, 0), True), (left, False)]
    cell = geometry.region * recording.regions_per_cell
    found = []
    for pages, inward in parts:
        bins, cells = np.nonzero(pages)
        moved = pages[bins, cells] * float(geometry.page)
        found.append((recording.books["time"][bins], cells * float(cell), moved, inward))
    end = np.concatenate([part[0] for part in found])
    order = np.argsort(end, kind="stable")
    return Copies(
        end[order],
        np.concatenate([part[1] for part in found])[order],
        np.concatenate([part[2] for part in found])[order],
        np.concatenate([np.full(len(part[0]), part[3]) for part in found])[order],
    )
