"""Totals of a trace: footprint, touches, launches, and the working set over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from tidegate.errors import TidegateError
from tidegate.trace.trace import Launch, Ranges, Trace, check_launch

_WINDOWS = 64


@dataclass(frozen=True)
class TraceInfo:
    """The figures of ``tidegate trace info``.

    ``launches``: name, place, blocks, touches, bytes of each, its duration in ns (0: by its
    touches), and the pages it copies and frees. ``working_set``: distinct pages per window of
    touches. Windows widen as the trace grows, so that there are at most 64. ``live_peak``: most
    pages that held data at a time.
    """

    touches: int
    writes: int
    bytes: int
    touched_pages: int
    launches: pl.DataFrame
    working_set: pl.DataFrame
    objects: pl.DataFrame
    live_peak: int


def describe(trace: Trace, progress: Callable[[int], None] = lambda touches: None) -> TraceInfo:
    """Return the totals of ``trace``, which is read once."""
    seen = np.zeros(trace.pages, dtype=bool)
    writes = used = 0
    rows: list[tuple[Any, ...]] = []
    windows, live = _Windows(trace.pages), _LivePages(trace)
    for launch in trace.launches():
        check_launch(launch, trace)
        blocks = touches = launch_bytes = 0
        for s in launch.segments:
            seen[s.page] = True
            windows.add(s.page)
            live.touch(s.page)
            blocks, touches = blocks + s.blocks, touches + s.touches
            launch_bytes += int(s.bytes.sum(dtype=np.int64))
            writes += int(np.count_nonzero(s.write))
            progress(s.touches)
        used += launch_bytes
        rows.append((*_launch_figures(launch), blocks, touches, launch_bytes))
        live.free(launch.frees)
    if not seen.any():
        raise TidegateError(f"trace {trace.name} is empty: it touches nothing")
    launches = pl.DataFrame(rows, schema=_LAUNCH_COLUMNS, orient="row")
    touched = [int(seen[o.first_page : o.first_page + o.pages].sum()) for o in trace.objects]
    objects = pl.DataFrame(
        {
            "name": [o.name for o in trace.objects],
            "bytes": [o.bytes for o in trace.objects],
            "host_bytes": [
                o.bytes if o.host is None else sum(end - first for first, end in o.host)
                for o in trace.objects
            ],
            "share_touched": [
                n / max(o.pages, 1) for n, o in zip(touched, trace.objects, strict=True)
            ],
        }
    )
    working_set = windows.table(trace.geometry.page)
    touches = int(launches["touches"].sum())
    return TraceInfo(
        touches, writes, used, int(seen.sum()), launches, working_set, objects, live.peak
    )


_LAUNCH_COLUMNS = {
    "name": pl.String,
    "place": pl.String,
    "duration": pl.Float64,
    "copied_pages": pl.Int64,
    "freed_pages": pl.Int64,
    "blocks": pl.Int64,
    "touches": pl.Int64,
    "bytes": pl.Int64,
}


def _launch_figures(launch: Launch) -> tuple[str, str, float, int, int]:
    """Return what is known of a launch without reading its touches."""
    copied = sum(copy.pages for copy in launch.copies)
    freed = sum(end - first for first, end in launch.frees)
    return launch.name, launch.place, launch.duration, copied, freed


class _LivePages:
    """Pages that hold data: host data, or written since they were last freed."""

    def __init__(self, trace: Trace):
        self._holds = np.zeros(trace.pages, np.bool_)
        for o in trace.objects:
            self._holds[o.first_page : o.first_page + o.pages] = True
        self._holds &= ~trace.unwritten()
        self._now = self.peak = int(self._holds.sum())

    def touch(self, page: np.ndarray) -> None:
        born = np.unique(page[~self._holds[page]])
        self._holds[born] = True
        self._now += len(born)
        self.peak = max(self.peak, self._now)

    def free(self, ranges: Ranges) -> None:
        for first, end in ranges:
            self._now -= int(self._holds[first:end].sum())
            self._holds[first:end] = False


class _Windows:
    """Distinct pages per window. If there are too many windows, neighbours are merged."""

    def __init__(self, pages: int):
        self._pages = pages
        self._width = 1 << 16
        self._sets: list[np.ndarray] = []
        self._fill = self._width

    def add(self, page: np.ndarray) -> None:
        at = 0
        while at < len(page):
            if self._fill >= self._width:
                if len(self._sets) == _WINDOWS:
                    pairs = zip(self._sets[::2], self._sets[1::2], strict=True)
                    self._sets = [a | b for a, b in pairs]
                    self._width *= 2
                self._sets.append(np.zeros(self._pages, dtype=bool))
                self._fill = 0
            take = min(len(page) - at, self._width - self._fill)
            self._sets[-1][page[at : at + take]] = True
            self._fill += take
            at += take

    def table(self, page_bytes: int) -> pl.DataFrame:
        counts = [int(s.sum()) for s in self._sets]
        first = [i * self._width for i in range(len(counts))]
        sizes = [count * page_bytes for count in counts]
        return pl.DataFrame({"first_touch": first, "pages": counts, "bytes": sizes})
