"""Traces in the formats of other tools: a row or record for each touch.

    Trace ──▶ EXPORTERS["csv"](trace, path, progress)

The touches are in the order of the trace: launch by launch, block by block. How a GPU interleaves
blocks is the mechanism's business and not in the file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tidegate.compiled.jit import jit
from tidegate.display.tables import for_spreadsheets
from tidegate.trace.trace import Trace


def export_csv(trace: Trace, path: Path, progress: Callable[[int], None]) -> None:
    """Write one line for each touch, with a header; pages are counted within their object."""
    first = np.array([o.first_page for o in trace.objects])
    names = pl.Series("object", [for_spreadsheets(o.name) for o in trace.objects])
    with path.open("wb") as file:
        for number, launch in enumerate(trace.launches()):
            block = 0
            for segment in launch.segments:
                owner = np.searchsorted(first, segment.page, side="right") - 1
                blocks = np.repeat(np.arange(segment.blocks) + block, np.diff(segment.starts))
                block += segment.blocks
                frame = pl.DataFrame(
                    {
                        "launch": np.full(segment.touches, number, np.int32),
                        "name": np.full(segment.touches, for_spreadsheets(launch.name)),
                        "block": blocks,
                        "object": names.gather(owner),
                        "page": segment.page - first[owner],
                        "write": segment.write,
                        "bytes": segment.bytes,
                        "site": segment.reference,
                    }
                )
                frame.write_csv(file, include_header=file.tell() == 0)
                progress(segment.touches)


RECORD = np.dtype([("time", "<u4"), ("key", "<u8"), ("size", "<u4"), ("next", "<i8")])
_PART = 1 << 20  # touches


def export_oracle_general(trace: Trace, path: Path, progress: Callable[[int], None]) -> None:
    """Write one record for each touch of a page: time in touches, page, page size, next access.

    The next access is known only at the end, so touches are written first and their next accesses
    filled in from the last touch to the first, through a memory map of the file.
    """
    touches = 0
    with path.open("wb") as file:
        for launch in trace.launches():
            for segment in launch.segments:
                rows = np.zeros(segment.touches, RECORD)
                rows["time"] = np.arange(touches, touches + segment.touches) & 0xFFFFFFFF
                rows["key"], rows["size"] = segment.page, trace.geometry.page
                file.write(rows.tobytes())
                touches += segment.touches
                progress(segment.touches)
    if touches:
        _fill_in(np.memmap(path, RECORD, "r+"), trace.pages)


def _fill_in(rows: Any, pages: int) -> None:
    following = np.full(pages, -1, np.int64)
    for end in range(len(rows), 0, -_PART):
        begin = max(0, end - _PART)
        keys = rows["key"][begin:end].astype(np.int64)
        rows["next"][begin:end] = _next_accesses(keys, following, begin)
    rows.flush()


@jit
def _next_accesses(keys: Any, following: Any, begin: int) -> Any:
    found = np.empty(len(keys), np.int64)
    for i in range(len(keys) - 1, -1, -1):
        found[i] = following[keys[i]]
        following[keys[i]] = begin + i
    return found


Exporter = Callable[[Trace, Path, Callable[[int], None]], None]

EXPORTERS: dict[str, Exporter] = {"csv": export_csv, "oracle-general": export_oracle_general}
