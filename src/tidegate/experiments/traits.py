"""Traits of a trace, whatever the tiering: reuse, and distances that remain when CLOCK evicts."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.analysis.remaining import remaining_by_id, reuse_pairs, shares
from tidegate.trace.trace import Trace

SHOWN = 2000  # points kept of a scatter
BINS = 64  # of the distribution of remaining distances


def trace_traits(
    trace: Trace, near: int, middle: int
) -> tuple[dict[str, Any], dict[str, dict[str, list[Any]]]]:
    """Return facts and tables about a trace, for memories of ``near`` and ``middle`` pages."""
    pages = np.concatenate(
        [segment.page for launch in trace.launches() for segment in launch.segments]
    )
    returned, remaining = remaining_by_id(pages, near)
    vtd, distance = reuse_pairs(pages)
    edges = np.linspace(0, 2.5 * (near + middle), BINS + 1)
    visited = len(np.unique(pages))
    facts = {
        "reuse": 1 - visited / max(1, len(pages)),
        "visits": len(pages),
        "visited": visited,
        "remaining": shares(remaining, near, middle),
        "remaining_middle": middle,
        "returns": len(remaining),
        **_line(vtd, distance),
        "same_class": _same_class(returned, np.digitize(remaining, (near, near + middle))),
    }
    tables = {
        "distances": {
            "share": np.histogram(remaining.clip(max=edges[-1]), edges)[0].tolist(),
            "from": edges[:-1].tolist(),
        },
        "pairs": {"vtd": _some(vtd), "distance": _some(distance)},
        "returns": {"page": _some(returned), "remaining": _some(remaining)},
    }
    return facts, tables


def _line(vtd: Any, distance: Any) -> dict[str, float | int]:
    """Return the regression of Figure 4a over all pairs, its correlation, and the number of
    different distances.

    Visits are merged, so a page touched twice in a row is missing; it is the point (1, 0). Without
    it a loop, where all distances are equal, would have no line.
    """
    x, y = (
        np.concatenate([given, [first]]).astype(np.float64)
        for given, first in ((vtd, 1), (distance, 0))
    )
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return {"slope": 1.0, "correlation": 1.0, "distinct": len(np.unique(distance))}
    slope, correlation = float(np.polyfit(x, y, 1)[0]), float(np.corrcoef(x, y)[0, 1])
    return {"slope": slope, "correlation": correlation, "distinct": len(np.unique(distance))}


def _same_class(page: Any, tier: Any) -> float | None:
    """Return the share of returns, after a page's first, with the same tier as the one before."""
    order = np.argsort(page, kind="stable")
    follows = page[order][1:] == page[order][:-1]
    return float((tier[order][1:] == tier[order][:-1])[follows].mean()) if follows.any() else None


def _some(values: Any) -> list[int]:
    """Return at most SHOWN of the values, evenly spread."""
    return [int(v) for v in values[:: max(1, -(-len(values) // SHOWN))]]
