"""Totals of a trace: footprint, touches, launches, and the working set over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from tidegate.errors import TidegateError
from tidegate.trace.trace import Trace

_WINDOWS = 64


@dataclass(frozen=True)
class TraceInfo:
    """The figures of ``tidegate trace info``.

    ``launches``: name, blocks, touches, bytes of each. ``working_set``: distinct pages per window
    of touches. Windows widen as the trace grows, so that there are at most 64.
    """

    touches: int
    writes: int
    bytes: int
    touched_pages: int
    launches: pl.DataFrame
    working_set: pl.DataFrame
    objects: pl.DataFrame


def describe(trace: Trace, progress: Callable[[int], None] = lambda touches: None) -> TraceInfo:
    """Return the totals of ``trace``, which is read once."""
    seen = np.zeros(trace.pages, dtype=bool)
    writes = used = 0
    rows: list[tuple[str, int, int, int]] = []
    windows = _Windows(trace.pages)
    for launch in trace.launches():
        blocks = touches = launch_bytes = 0
        for s in launch.segments:
            seen[s.page] = True
            windows.add(s.page)
            blocks, touches = blocks + s.blocks, touches + s.touches
            launch_bytes += int(s.bytes.sum(dtype=np.int64))
            writes += int(np.count_nonzero(s.write))
            progress(s.touches)
        used += launch_bytes
        rows.append((launch.name, blocks, touches, launch_bytes))
    if not sum(r[2] for r in rows):
        raise TidegateError(f"trace {trace.name} is empty: it touches nothing")
    launches = pl.DataFrame(rows, schema=["name", "blocks", "touches", "bytes"], orient="row")
    touched = [int(seen[o.first_page : o.first_page + o.pages].sum()) for o in trace.objects]
    objects = pl.DataFrame(
        {
            "name": [o.name for o in trace.objects],
            "bytes": [o.bytes for o in trace.objects],
            "share_touched": [
                n / max(o.pages, 1) for n, o in zip(touched, trace.objects, strict=True)
            ],
        }
    )
    working_set = windows.table(trace.geometry.page)
    touches = int(launches["touches"].sum())
    return TraceInfo(touches, writes, used, int(seen.sum()), launches, working_set, objects)


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
