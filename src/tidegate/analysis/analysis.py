"""Analyze: the memory needs of a trace, in one pass and without a machine, and their display."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tidegate.analysis.curves import MissRatioCurve, curve_of
from tidegate.analysis.footprint import Footprint
from tidegate.analysis.reuse import ReuseDistances, histogram
from tidegate.analysis.sequence import Sequence, Unit, empty
from tidegate.analysis.shards import Shards
from tidegate.trace.trace import Trace, check_trace
from tidegate.units import show_count, show_size

if TYPE_CHECKING:
    from tidegate.display.tables import Cell, Table


@dataclass(frozen=True, eq=False, repr=False)
class Analysis:
    """The result of :func:`analyze`.

    ``name``: the trace's. ``unit``: page or region, of ``unit_bytes``. ``touches``, ``distinct``:
    their number and that of different ids. ``curve``: the exact LRU miss-ratio curve.
    ``shards_curve``: the sampled one, if requested. ``histogram``: reuse distances in doubling
    buckets. ``footprint``: distinct ids and bytes over time.
    """

    name: str
    unit: Unit
    unit_bytes: int
    touches: int
    distinct: int
    curve: MissRatioCurve
    shards_curve: MissRatioCurve | None
    histogram: pl.DataFrame
    footprint: pl.DataFrame

    def __repr__(self) -> str:
        return analysis_text(self)

    def _repr_html_(self) -> str:
        return analysis_html(self)

    def plot(self, path: str | Path) -> Path:
        """Draw the curve, the histogram and the footprint; the suffix is the format (png, svg,
        html).
        """
        # imported here, because matplotlib loads slowly and only figures need it
        from tidegate.analysis.plot import figure
        from tidegate.display.figures import save_figure

        save_figure(figure(self), Path(path), title=f"{self.name}: what it asks of memory")
        return Path(path)


def analyze(
    trace: Trace,
    unit: Unit = "region",
    shards: float | None = None,
    progress: Callable[[int], None] = lambda touches: None,
) -> Analysis:
    """Analyze ``trace``, which is read once.

    ``shards``: a sampling rate, such as 0.01, to add a sampled curve to the exact one.
    ``progress``: called with the number of touches of each segment read.

    >>> import tidegate
    >>> found = analyze(tidegate.RunSpec("cyclic(bytes=16MiB, passes=3)").trace())
    >>> found.distinct, int(found.curve.misses[-1])  # memory for all eight: each misses once
    (8, 8)
    """
    check_trace(trace)
    sequence = Sequence(trace, unit)
    reuse, footprint = ReuseDistances(sequence.bound), Footprint(sequence.bound)
    sample = Shards(sequence.bound, shards) if shards is not None else None
    for ids in sequence:
        reuse.update(ids)
        footprint.update(ids)
        if sample:
            sample.update(ids)
        progress(len(ids))
    if not reuse.touches:
        raise empty(trace)
    size = sequence.unit_bytes
    curves = curve_of(reuse, size), sample.curve(size) if sample else None
    tables = histogram(reuse, size), footprint.table(size)
    return Analysis(trace.name, unit, size, reuse.touches, reuse.cold, *curves, *tables)


WIDTH = 80  # at a prompt
_POINTS, _SHOWN = 64, 12  # of the curve


def curve_points(found: Analysis) -> list[dict[str, float]]:
    """Return the curve at up to 64 sizes, evenly spread."""
    at = np.unique(np.linspace(0, len(found.curve.capacities) - 1, _POINTS).astype(int))
    points = [
        {
            "bytes": int(found.curve.sizes[i]),
            "misses": int(found.curve.misses[i]),
            "ratio": float(found.curve.ratios[i]),
        }
        for i in at
    ]
    if found.shards_curve is not None:
        sampled = found.shards_curve.misses_at(found.curve.capacities[at]) / found.touches
        for row, ratio in zip(points, sampled, strict=True):
            row["sampled_ratio"] = float(ratio)
    return points


def analysis_head(found: Analysis) -> str:
    """Return the totals in one line."""
    touches, distinct = show_count(found.touches), show_count(found.distinct)
    size = show_size(found.distinct * found.unit_bytes)
    return f"{found.name}: {touches} touches of {distinct} {found.unit}s, {size}"


def analysis_tables(found: Analysis) -> list[Table]:
    """Return some points of the curve, and the reuse distances."""
    from tidegate.display.tables import ShareBar, Table

    points = curve_points(found)
    step = max(1, len(points) // _SHOWN)
    sampled = "sampled_ratio" in points[0]
    rows: list[list[Cell]] = [
        [
            show_size(r["bytes"]),
            f"{r['ratio']:.2%}",
            ShareBar(r["ratio"]),
            *([f"{r['sampled_ratio']:.2%}"] if sampled else []),
        ]
        for r in points[::-1][::step][::-1]
    ]
    distances = [
        (
            "first touch" if h["at_least"] is None else f"from {show_size(h['bytes'])}",
            show_count(h["touches"]),
            f"{h['share']:.2%}",
        )
        for h in found.histogram.to_dicts()
    ]
    return [
        Table(["LRU misses with", "ratio", "", *(["sampled"] if sampled else [])], rows),
        Table(["reuse distance", "touches", "share"], distances),
    ]


def analysis_text(found: Analysis) -> str:
    """Return an analysis for a prompt."""
    tables = (table.text(WIDTH) for table in analysis_tables(found))
    return "\n\n".join((f"<Analysis of {analysis_head(found)}>", *tables))


def analysis_html(found: Analysis) -> str:
    """Return an analysis for a notebook: its tables and its picture."""
    from tidegate.analysis.plot import figure
    from tidegate.display.figures import html_image

    tables = "".join(table.html() for table in analysis_tables(found))
    return f"<p><b>{html.escape(analysis_head(found))}</b></p>{tables}{html_image(figure(found))}"
