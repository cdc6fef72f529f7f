"""A trace as CSV: launch, block, object, page within the object, write, bytes, access site."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from tidegate.display.tables import for_spreadsheets
from tidegate.trace.trace import Trace


def export_csv(trace: Trace, path: Path, progress: Callable[[int], None]) -> None:
    """Write one line for each touch, with a header."""
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
