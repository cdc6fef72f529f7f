"""Figure 3 and O15: notifications grow with regions until the counters run out."""

from __future__ import annotations

from functools import partial

import polars as pl
from matplotlib.figure import Figure

from tidegate.display.figures import COLOURS
from tidegate.papers.ledger import Claim, Finding
from tidegate.papers.observuvm.findings import CLAIMS
from tidegate.papers.pictures import LINE, new_axes
from tidegate.papers.report import Exhibit, make_exhibit
from tidegate.papers.results import NotRun, Results, find, part

COUNTERS = 256
_TITLE = "the limited number of access counters"


def saturation_figure(results: Results) -> Exhibit:
    """Return Figure 3."""
    counted = _counted(results)
    table = pl.DataFrame({"regions": list(counted), "notifications": list(counted.values())})
    return make_exhibit("observuvm", "Figure 3", _TITLE, table, partial(_draw, table))


def saturation_findings(results: Results) -> list[Finding]:
    """Return the findings on O15: linear, then flat."""
    return find(CLAIMS, (part("O15", "linear", _linear), part("O15", "flat", _flat)), results)


def _counted(results: Results) -> dict[int, int]:
    """Return notifications by the number of regions."""
    if not results.runs:
        raise NotRun("the microbenchmark was not run")
    return {regions: run.counts["notifications"] for (regions, _), run in results.runs.items()}


def _linear(claim: Claim, results: Results) -> Finding:
    counted = _counted(results)
    off = [f"{n} at {p} regions" for p, n in counted.items() if p <= COUNTERS and n != p]
    return claim.holds(not off, "one per region up to 256", ", ".join(off) or "one per region")


def _flat(claim: Claim, results: Results) -> Finding:
    above = sorted({n for p, n in _counted(results).items() if p > COUNTERS})
    flat = above[0] if len(above) == 1 else f"{above[0]} to {above[-1]}" if above else "nothing"
    why = "a counter that notified was free again before all regions had been counted"
    return claim.exact(flat, why=why)


def _draw(table: pl.DataFrame) -> Figure:
    labels = {"xlabel": "regions of 2 MB, pinned far", "ylabel": "notifications"}
    figure, axes = new_axes(5.5, 3.2, f"Figure 3: {_TITLE}", **labels)
    axes.plot(table["regions"], table["notifications"], marker="o", color=COLOURS[0])
    axes.axhline(COUNTERS, **LINE, linestyle=":")
    axes.set(ylim=(0, None), xlim=(0, None))
    return figure
