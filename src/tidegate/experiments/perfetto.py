"""A run for Perfetto's viewer: launches as slices; faults, traffic and near memory as counters.

The file is JSON in Chrome's trace event format, which ui.perfetto.dev opens. Times are in µs. How
much of each object is near is noted while the run goes on; only the largest objects have a track.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.experiments.runs import Run
from tidegate.files import write_atomically

_PROGRAM, _MEMORY = 1, 2  # the viewer's groups of tracks
_TRACKS = 16  # objects
_SAMPLES = 1024


class Residency:
    """Notes how much of the largest objects is near, some hundred times in a run."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, NDArray[np.int64]]] = []
        self.names: list[str] = []
        self._every, self._calls = 1, 0

    def note(self, simulation: Any, touches: int) -> None:
        """Take a sample: a progress function of ``RunSpec.run_watched``."""
        self._calls += 1
        if self._calls % self._every:
            return
        objects, ppr = simulation.trace.objects, simulation.trace.geometry.pages_per_region
        largest = sorted(objects, key=lambda o: (-o.bytes, o.first_page))[:_TRACKS]
        self.names = [o.name for o in largest]
        near = simulation.memory.resident
        own = (slice(o.first_page // ppr, -(-(o.first_page + o.pages) // ppr)) for o in largest)
        pages = np.array([int(near[part].sum()) for part in own])
        self.rows.append((float(simulation.books[0]["front"]), pages))
        if len(self.rows) >= _SAMPLES:  # keep every second one, and sample half as often
            self.rows, self._every = self.rows[::2], 2 * self._every


def export_perfetto(run: Run, path: str | Path, residency: Residency | None = None) -> Path:
    """Write a run to a .json file, whole or not at all."""
    path = Path(path)
    events = [*_names(run), *_launches(run), *_counters(run)]
    if residency is not None:
        events += _near(residency, run.facts["page_bytes"])
    about = {k: v for k, v in run.facts.items() if isinstance(v, str | int | float)}
    data = {"displayTimeUnit": "ms", "otherData": about, "traceEvents": events}
    write_atomically(path, json.dumps(data, separators=(",", ":")))
    return path


def _names(run: Run) -> list[dict[str, Any]]:
    titles = {_PROGRAM: str(run.facts["workload"]), _MEMORY: "memory"}
    return [
        {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": title}}
        for pid, title in titles.items()
    ]


def _launches(run: Run) -> list[dict[str, Any]]:
    return [
        {
            "ph": "X",
            "pid": _PROGRAM,
            "tid": 1,
            "name": row["name"],
            "cat": "launch",
            "ts": row["start"] / 1e3,
            "dur": (row["end"] - row["start"]) / 1e3,
            "args": {c: row[c] for c in ("touches", "faults", "evictions")},
        }
        for row in run.launches.iter_rows(named=True)
    ]


def _counters(run: Run) -> list[dict[str, Any]]:
    """Return rates between two rows of the timeline, and the frames in use."""
    if "timeline" not in run.tables:
        return []
    page, table = run.facts["page_bytes"], run.timeline
    found, before = [], dict.fromkeys(table.columns, 0.0)
    frame = run.facts["region_bytes"]
    for row in table.iter_rows(named=True):
        span = row["time"] - before["time"]
        if span <= 0:
            continue
        rates = {
            "link in, GB/s": (row["pages_in"] - before["pages_in"]) * page / span,
            "link out, GB/s": (
                (row["pages_written_back"] - before["pages_written_back"]) * page / span
            ),
            "faults per ms": (row["faults"] - before["faults"]) / span * 1e6,
            "evictions per ms": (row["evictions"] - before["evictions"]) / span * 1e6,
            "near memory, MiB": row["frames_used"] * frame / (1 << 20),
        }
        found += [_counter(name, before["time"], value) for name, value in rates.items()]
        before = row
    return found


def _near(residency: Residency, page: int) -> list[dict[str, Any]]:
    return [
        _counter(f"near: {name}, MiB", at, count * page / (1 << 20))
        for at, counts in residency.rows
        for name, count in zip(residency.names, counts.tolist(), strict=True)
    ]


def _counter(name: str, at: float, value: float) -> dict[str, Any]:
    args = {"value": round(value, 3)}
    return {"ph": "C", "pid": _MEMORY, "tid": 0, "name": name, "ts": at / 1e3, "args": args}
