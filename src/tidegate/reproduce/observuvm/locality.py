"""Figure 5 and O14: how many of a region's pages were used before it was evicted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from tidegate.experiments.runs import Run
from tidegate.figures import COLOURS
from tidegate.reproduce.ledger import Finding, percent
from tidegate.reproduce.observuvm.findings import CLAIMS
from tidegate.reproduce.report import Exhibit

_WORDS = (
    "The height (y-axis) of a bar at a point 'p' on the x-axis captures the fraction of 2MB regions (y-axis) whose 'p' "
    "constituent pages are accessed. […] all constituent pages of more than 90% of regions are accessed before eviction. "
    "(IV-A)"
)


def locality_figure(runs: Mapping[str, Run]) -> Exhibit:
    """Figure 5: all applications together, and each."""
    table = locality_table(runs)
    note = (
        "Under UVM. Touched: used while near. Near: migrated, by a fault or by the tree's prefetch."
    )
    draw = partial(_draw, runs, table)
    return Exhibit(
        "Figure 5", "locality in 2 MB regions upon eviction", _WORDS, table, draw, (note,)
    )


def locality_table(runs: Mapping[str, Run]) -> pl.DataFrame:
    """A row per application that evicted anything."""
    rows = []
    for name, run in runs.items():
        touched, near = counted(run)
        if touched.sum():
            rows.append(
                {
                    "application": name,
                    "evictions": int(touched.sum()),
                    "all touched": whole_share(touched),
                    "all near": whole_share(near),
                    "pages touched": _mean_share(touched),
                    "pages near": _mean_share(near),
                }
            )
    schema = {"application": pl.String, "evictions": pl.Int64} | dict.fromkeys(
        ("all touched", "all near", "pages touched", "pages near"), pl.Float64
    )
    return pl.DataFrame(rows, schema=schema)


def locality_findings(runs: Mapping[str, Run]) -> list[Finding]:
    """O14, three ways to count it."""
    claim = CLAIMS["O14"]
    table = locality_table(runs)
    if table.is_empty():
        return [claim.unmeasured("nothing was evicted, or the runs kept no record of it")]
    touched, near = pooled(runs)
    low = table.sort("all touched").head(3)
    which = ", ".join(
        f"{a} {percent(x)}" for a, x in zip(low["application"], low["all touched"], strict=True)
    )
    why = f"least in {which}; on average {percent(_mean_share(touched))} of an evicted region's pages were touched"
    mean = float(np.mean(table["all touched"].to_numpy()))
    return [
        claim.ratio(whole_share(touched), "of all regions", part="regions", at_least=True, why=why),
        claim.ratio(mean, "mean of applications", part="mean", at_least=True, why=why),
        claim.ratio(whole_share(near), "of all regions", part="migrated", at_least=True, why=why),
    ]


def counted(run: Run) -> tuple[Any, Any]:
    """Evicted regions by pages touched and by pages near."""
    report = run.facts.get("policy_report", {})
    return np.array(report.get("touched", [0])), np.array(report.get("near", [0]))


def pooled(runs: Mapping[str, Run]) -> tuple[Any, Any]:
    """The same for all applications together."""
    each = [counted(run) for run in runs.values()]
    return sum(t for t, _ in each), sum(n for _, n in each)


def whole_share(histogram: Any) -> float:
    """The share of regions with all pages."""
    return float(histogram[-1] / histogram.sum())


def _mean_share(histogram: Any) -> float:
    return float(
        (histogram * np.arange(len(histogram))).sum() / histogram.sum() / (len(histogram) - 1)
    )


def _draw(runs: Mapping[str, Run], table: pl.DataFrame) -> Figure:
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    if not table.is_empty():
        for offset, histogram, label, colour in zip(
            (-0.2, 0.2), pooled(runs), ("touched", "near"), COLOURS, strict=False
        ):
            left.bar(
                np.arange(len(histogram)) + offset,
                histogram / histogram.sum(),
                0.4,
                label=label,
                color=colour,
            )
            column = table[f"all {label}"].to_list()
            right.bar(np.arange(len(column)) + offset, column, 0.4, color=colour)
    left.set(xlabel="pages of a region, at its eviction", ylabel="share of regions", ylim=(0, 1.04))
    left.set_title("all applications")
    left.legend(frameon=False, fontsize=8)
    right.axhline(0.9, color="#444444", linewidth=0.8, linestyle=":")
    right.set_xticks(range(len(table)), table["application"].to_list(), fontsize=7)
    right.set(ylabel="share of regions with all pages", ylim=(0, 1.04), title="each application")
    for axes in (left, right):
        axes.title.set_fontsize(10)
    figure.suptitle("Figure 5: locality in 2 MB regions upon eviction", fontsize=10)
    return figure
