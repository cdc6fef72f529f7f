"""Figure 5 and O14: how many of a region's pages were used before it was evicted."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from tidegate.display.figures import COLOURS
from tidegate.experiments.runs import Run
from tidegate.papers.ledger import Claim, Finding, percent
from tidegate.papers.observuvm.findings import CLAIMS
from tidegate.papers.pictures import LINE
from tidegate.papers.report import Exhibit, make_exhibit
from tidegate.papers.results import NotRun, Results, find, part
from tidegate.policies.interface.policy import PlacementPolicy
from tidegate.policies.interface.visibility import TouchBits


class Recorder(PlacementPolicy):
    """Count evicted regions by their touched pages and by their near pages. Decides nothing.

    A region that is shorter than others (at an object's end) is counted by its share of pages.
    """

    sees = TouchBits()
    name = "recorder"

    def start(self) -> None:
        pages = self.memory.geometry.pages_per_region
        self._touched = np.zeros(pages + 1, np.int64)
        self._near = np.zeros(pages + 1, np.int64)

    def on_eviction(self, region: int) -> None:
        for counted, pages in (
            (self._touched, self.memory.touched(region)),
            (self._near, self.memory.near(region)),
        ):
            counted[int(pages.sum()) * (len(counted) - 1) // len(pages)] += 1

    def report(self) -> dict[str, Any]:
        return {"touched": self._touched.tolist(), "near": self._near.tolist()}


_TITLE = "locality in 2 MB regions upon eviction"
_NOTE = "Under UVM. Touched: used while near. Near: migrated, by a fault or by the tree's prefetch."
_SHARES = ("all touched", "all near", "pages touched", "pages near")


def locality_figure(results: Results) -> Exhibit:
    """Return Figure 5: all applications together, and each."""
    table = locality_table(results)
    draw = partial(_draw, results, table)
    return make_exhibit("observuvm", "Figure 5", _TITLE, table, draw, [_NOTE])


def locality_table(results: Results) -> pl.DataFrame:
    """Return a row per application that evicted anything."""
    rows = []
    for (name, _), run in results.runs.items():
        touched, near = histograms(run)
        if touched.sum():
            whole = whole_share(touched), whole_share(near)
            shares = (*whole, _mean_share(touched), _mean_share(near))
            rows.append((name, int(touched.sum()), *shares))
    schema = {"application": pl.String, "evictions": pl.Int64} | dict.fromkeys(_SHARES, pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row")


def locality_findings(results: Results) -> list[Finding]:
    """Return the findings on O14, which can be counted in three ways."""
    return find(CLAIMS, [part("O14", way, _whole, way) for way in _WAYS], results)


_WAYS = {"regions": "of all regions", "mean": "mean of applications", "migrated": "of all regions"}


def _whole(claim: Claim, results: Results, way: str) -> Finding:
    """Compare the share of regions all of whose pages were touched, or migrated."""
    table = locality_table(results)
    if table.is_empty():
        raise NotRun("nothing was evicted, or the runs kept no record of it")
    touched, near = pooled(results)
    low = table.sort("all touched").head(3).select("application", "all touched").rows()
    least, mean = ", ".join(f"{a} {percent(x)}" for a, x in low), percent(_mean_share(touched))
    why = f"least in {least}; on average {mean} of an evicted region's pages were touched"
    ours = {
        "regions": whole_share(touched),
        "mean": float(np.mean(table["all touched"].to_numpy())),
        "migrated": whole_share(near),
    }[way]
    return claim.ratio(ours, _WAYS[way], at_least=True, why=why)


def histograms(run: Run) -> tuple[Any, Any]:
    """Return evicted regions by pages touched and by pages near."""
    report = run.facts.get("policy_report", {})
    return np.array(report.get("touched", [0])), np.array(report.get("near", [0]))


def pooled(results: Results) -> tuple[Any, Any]:
    """Return both histograms for all applications together."""
    each = [histograms(run) for run in results.runs.values()]
    return sum(t for t, _ in each), sum(n for _, n in each)


def whole_share(histogram: Any) -> float:
    """Return the share of regions with all pages."""
    return float(histogram[-1] / histogram.sum())


def _mean_share(histogram: Any) -> float:
    pages = np.arange(len(histogram))
    return float((histogram * pages).sum() / histogram.sum() / (len(histogram) - 1))


def _draw(results: Results, table: pl.DataFrame) -> Figure:
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    if not table.is_empty():
        series = zip((-0.2, 0.2), pooled(results), ("touched", "near"), COLOURS, strict=False)
        for offset, histogram, label, colour in series:
            share = histogram / histogram.sum()
            left.bar(np.arange(len(share)) + offset, share, 0.4, label=label, color=colour)
            column = table[f"all {label}"].to_list()
            right.bar(np.arange(len(column)) + offset, column, 0.4, color=colour)
    left.set(xlabel="pages of a region, at its eviction", ylabel="share of regions", ylim=(0, 1.04))
    left.set_title("all applications", fontsize=10)
    left.legend(frameon=False, fontsize=8)
    right.axhline(0.9, **LINE, linestyle=":")
    right.set_xticks(range(len(table)), table["application"].to_list(), fontsize=7)
    right.set(ylabel="share of regions with all pages", ylim=(0, 1.04))
    right.set_title("each application", fontsize=10)
    figure.suptitle(f"Figure 5: {_TITLE}", fontsize=10)
    return figure
