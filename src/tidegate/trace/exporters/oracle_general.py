"""A trace as libCacheSim's oracleGeneral: 24 bytes a touch: time, page, page size, next access.

The next access is known only at the end, so touches are written first and their next accesses
filled in from the last touch to the first, through a memory map of the file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tidegate.compiled.jit import jit
from tidegate.trace.trace import Trace

RECORD = np.dtype([("time", "<u4"), ("key", "<u8"), ("size", "<u4"), ("next", "<i8")])
_PART = 1 << 20  # touches


def export_oracle_general(trace: Trace, path: Path, progress: Callable[[int], None]) -> None:
    """Write one record for each touch of a page. Time counts touches."""
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
