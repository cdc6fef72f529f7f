"""An analysis as text and HTML: at a prompt, in a notebook, on the command line."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np

from tidegate.display.tables import Cell, ShareBar, Table
from tidegate.units import show_count, show_size

if TYPE_CHECKING:
    from tidegate.analysis.analysis import Analysis

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
