"""Figures 11 to 13: other factors, ratios of the tiers and sizes of Tier-1.

The paper's values are not in our copy, so nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import geometric_mean
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from tidegate.display.figures import COLOURS
from tidegate.papers.gmt.grid import SWEPT, sweep_setups
from tidegate.papers.gmt.setup import BASE, Setup
from tidegate.papers.pictures import new_axes
from tidegate.papers.report import Exhibit, make_exhibit
from tidegate.papers.results import Groups, Results

# Option → figure and title
FIGURES = {
    "factor": ("Figure 11", "the over-subscription factor"),
    "ratio": ("Figure 12", "the ratio of Tier-2 to Tier-1"),
    "near": ("Figure 13", "the size of Tier-1"),
}


def sweep_figures(setup: Setup, groups: Groups) -> Iterator[Exhibit]:
    """Yield a figure for each option that has several values."""
    for name, (figure, title) in FIGURES.items():
        own = [g for g in sweep_setups(setup) if g.split()[0] == name]
        if own:
            table = sweep_table({g.split()[1]: groups[g] for g in own})
            title = f"sensitivity to {title}"
            draw = partial(_draw, table, name, f"{figure}: {title}")
            yield make_exhibit("gmt", figure, title, table, draw)


def sweep_table(by_value: dict[str, Results]) -> pl.DataFrame:
    """Return a row per value: the mean speed-up of each placement over BaM, and each one's."""
    rows = []
    for value, results in by_value.items():
        row: dict[str, Any] = {"value": value}
        for system in (s for s in SWEPT if s != BASE and s in results.systems):
            ratios = results.ratios(BASE, system)
            row[system] = geometric_mean(ratios.values())
            row |= {f"{system} {a}": ratio for a, ratio in ratios.items()}
        rows.append(row)
    return pl.DataFrame(rows)


def _draw(table: pl.DataFrame, name: str, title: str) -> Figure:
    figure, axes = new_axes(5.5, 3.2, title, xlabel=name, ylabel="mean speed-up over BaM")
    for system, colour in zip(SWEPT[1:], COLOURS, strict=False):
        if system in table.columns:
            axes.plot(table["value"], table[system], marker="o", color=colour, label=system)
    axes.legend(frameon=False, fontsize=8)
    axes.set(ylim=(0, None))
    return figure
