"""A finished recording: layers of bin × cell, the books of each bin, and one region's story."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import TidegateError
from tidegate.files import write_atomically
from tidegate.simulation.recording import (
    AS_ASKED,
    AS_COPY,
    AS_VICTIM,
    AT_DEATH,
    BY_COPY,
    BY_FAULT,
    BY_PREFETCH,
    BY_SAMPLE,
    CAME,
    FROM_FAR,
    FROM_MIDDLE,
    HELD,
    LAYERS,
    LEFT,
    SPILLED,
    STORY_COLUMNS,
    TO_FAR,
    TO_MIDDLE,
)

_WHAT = {CAME: "came", LEFT: "left", SPILLED: "left host memory"}
_WHY = {
    BY_FAULT: "fault",
    BY_PREFETCH: "prefetch",
    BY_COPY: "copy",
    BY_SAMPLE: "sample",
    AS_VICTIM: "victim",
    AS_ASKED: "request",
    AS_COPY: "copy",
    AT_DEATH: "death",
    FROM_MIDDLE: "from host memory",
    FROM_FAR: "from the SSD",
    TO_MIDDLE: "to host memory",
    TO_FAR: "to the SSD",
}
_PLACE = ("first_touch", "touches_per_bin", "first_region", "regions_per_cell", "regions")


@dataclass(frozen=True, eq=False)
class Recording:
    """What happened to every region over a run, in bins that hold equally many touches.

    ``layers``: arrays of bin × cell. ``touches``, ``faults``, ``evictions`` (of regions),
    ``prefetched`` and ``unused`` (pages that came without a fault, and that left untouched) are
    counts within the bin; ``residency`` is the pages near at its end. Over three tiers a region is
    a page, ``far_reads`` and ``spills`` (pages that left the middle) are in the place of
    ``prefetched`` and ``unused``, and ``middle`` is the pages in the middle. A cell is
    ``regions_per_cell`` regions, 1 unless there are very many. ``books``: counters and clocks at
    the end of each bin; ``before``: at the beginning of the first.

    >>> from tidegate import RunSpec
    >>> run, recording = RunSpec("cyclic(bytes=64MiB)", near="48MiB").record()
    >>> int(recording.layers["faults"].sum()) == run.counts["faults"]
    True
    """

    layers: dict[str, NDArray[Any]]
    books: dict[str, NDArray[np.float64]]
    before: dict[str, float]
    first_touch: int
    touches_per_bin: int
    first_region: int
    regions_per_cell: int
    regions: int
    pages: NDArray[np.int64]  # of each cell
    story: list[dict[str, Any]]
    story_lines: int  # more than ``story`` has, where it is cut

    def __repr__(self) -> str:
        size = f"{self.bins} bins of {self.touches_per_bin:,} touches × {self.cells:,} cells"
        return f"<Recording of {size}>"

    @property
    def bins(self) -> int:
        return len(self.books["time"])

    @property
    def cells(self) -> int:
        return int(self.layers["touches"].shape[1])

    @property
    def last_touch(self) -> int:
        """Touches made when its last bin ends."""
        return int(self.books["touches"][-1])

    @property
    def bytes(self) -> int:
        """Bytes of memory that it takes."""
        return sum(array.nbytes for array in (*self.layers.values(), *self.books.values()))

    def save(self, path: Path) -> None:
        """Write it to a file, in one step."""
        place = {name: getattr(self, name) for name in _PLACE}
        told = {**place, "before": self.before, "story": self.story, "lines": self.story_lines}
        arrays: dict[str, Any] = {f"layer {name}": array for name, array in self.layers.items()}
        arrays |= {f"books {name}": array for name, array in self.books.items()}
        file = io.BytesIO()
        arrays |= {"pages": self.pages, "told": np.array(json.dumps(told))}
        np.savez_compressed(file, **arrays)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, file.getvalue())

    @classmethod
    def load(cls, path: Path) -> Recording:
        """Read a recording that ``save`` wrote. Raise TidegateError if the file is damaged."""
        try:
            with np.load(path, allow_pickle=False) as file:
                told = json.loads(str(file["told"]))
                found = {name: file[name] for name in file.files}
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise TidegateError(f"{path} must hold a recording, got one that is damaged") from error
        return cls(
            layers={n.removeprefix("layer "): a for n, a in found.items() if n.startswith("layer")},
            books={n.removeprefix("books "): a for n, a in found.items() if n.startswith("books")},
            before=told["before"],
            **{name: told[name] for name in _PLACE},
            pages=found["pages"],
            story=told["story"],
            story_lines=told["lines"],
        )


def read_recording(
    memory: Any,
    columns: Sequence[str],
    touches: int,
    region_pages: NDArray[Any],
    names: Sequence[str] = LAYERS,
) -> Recording:
    """Return what a finished simulation of so many touches recorded.

    ``columns``: names of its marks. ``region_pages``: pages of each region. ``names``: its layers.
    """
    r = memory.recorder[0]
    if r["rows"] == 0:
        raise TidegateError("this simulation must have a window to record, got none")
    shift = int(r["shift"])
    last = max(0, touches - 1 - int(r["first_touch"])) >> shift
    bins = min(int(r["rows"]), last + 1)
    cells = int(r["cells"])
    layers = {name: memory.recorded[i, :bins, :cells] for i, name in enumerate(names)}
    if bins < r["rows"]:  # what came after the last touch belongs to it
        for i, name in enumerate(names):
            layers[name][-1] += memory.recorded[i, bins, :cells]
            memory.recorded[i, bins] = 0
    layers |= {n: np.cumsum(layers[n], axis=0, dtype=np.int32) for n in HELD if n in layers}
    ends = np.minimum(touches, int(r["first_touch"]) + (np.arange(bins) + 1 << shift))
    before = np.nan_to_num(memory.marks[r["rows"]])
    books = _books_of_bins(memory.marks[: r["rows"]], before, ends)
    lines = memory.story[: r["story_n"]].tolist()
    return Recording(
        layers={name: _narrow(array) for name, array in layers.items()},
        books={name: books[:, i].copy() for i, name in enumerate(columns)},
        before=dict(zip(columns, before.tolist(), strict=True)),
        first_touch=int(r["first_touch"]),
        touches_per_bin=1 << shift,
        first_region=int(r["first_region"]),
        regions_per_cell=1 << int(r["cell_shift"]),
        regions=len(region_pages),
        pages=_pages_of_cells(region_pages, r),
        story=[_line(line) for line in lines],
        story_lines=int(r["story_n"]),
    )


def recorded_accounts(memory: Any, expected: dict[str, Any], regions: int) -> dict[str, bool]:
    """Return which layers add up to the books, for a recording of a whole run; else nothing.

    ``expected``: for each layer, in their order, a sum by region, or one number.
    """
    r = memory.recorder[0]
    whole = r["open"] and not r["first_touch"] and r["rows"]
    if not whole or r["first_region"] or r["cells"] << r["cell_shift"] < regions:
        return {}
    accounts = {}
    for i, (layer, total) in enumerate(expected.items()):
        by_cell = memory.recorded[i, : r["rows"], : r["cells"]]
        by_cell = by_cell.sum(axis=0, dtype=np.int64)
        if np.ndim(total):
            padded = np.zeros(len(by_cell) << r["cell_shift"], np.int64)
            padded[: len(total)] = total
            holds = np.array_equal(by_cell, padded.reshape(len(by_cell), -1).sum(axis=1))
        else:
            holds = by_cell.sum() == total
        accounts[f"recorded {layer} add up"] = bool(holds)
    return accounts


def _books_of_bins(marks: NDArray[Any], before: NDArray[Any], ends: NDArray[Any]) -> Any:
    """Return the books at the end of each bin; between two marks they grow evenly.

    A mark is made in the round of the slots in which a bin begins; several bins may pass in one.
    """
    known = marks[~np.isnan(marks[:, 0])]
    known = np.vstack([before, known[known[:, 1] > before[1]]])
    touches = known[:, 1]
    return np.column_stack([np.interp(ends, touches, column) for column in known.T])


def _pages_of_cells(region_pages: NDArray[Any], r: Any) -> NDArray[np.int64]:
    first, each = int(r["first_region"]), 1 << int(r["cell_shift"])
    own = np.zeros(int(r["cells"]) * each, np.int64)
    inside = region_pages[first : first + len(own)]
    own[: len(inside)] = inside
    return own.reshape(-1, each).sum(axis=1)


def _narrow(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array in the smallest unsigned type that holds it."""
    return array.astype(np.min_scalar_type(int(array.max(initial=0))))


def _line(line: Sequence[float]) -> dict[str, Any]:
    told = dict(zip(STORY_COLUMNS, line, strict=True))
    whole = {name: int(told[name]) for name in ("touch", "pages", "touches")}
    return {
        "time": told["time"],
        **whole,
        "what": _WHAT[int(told["what"])],
        "why": _WHY[int(told["why"])],
    }
