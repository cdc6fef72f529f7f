"""Figures 14, 16 and 17: other levels of oversubscription, observed regions and samples.

The paper's values are not in our copy, so nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from tidegate.display.figures import COLOURS
from tidegate.papers.geometric_means import mean_of
from tidegate.papers.observuvm.grid import GRID, SWEPT, sweep_group
from tidegate.papers.observuvm.setup import Setup
from tidegate.papers.pictures import new_axes
from tidegate.papers.report import Exhibit, make_exhibit
from tidegate.papers.results import Groups, Results

BASE, *SYSTEMS = SWEPT
# Option → figure and title
FIGURES = {
    "oversubscribe": ("Figure 14", "levels of oversubscription"),
    "observed": ("Figure 16", "observable regions"),
    "samples": ("Figure 17", "samples per region"),
}


def sweep_figures(setup: Setup, groups: Groups) -> Iterator[Exhibit]:
    """Yield a figure for each option that has several values."""
    for name in setup.swept():
        figure, title = FIGURES[name]
        by_value = {
            value: groups[GRID if value == setup.main(name) else sweep_group(name, value)]
            for value in getattr(setup, name)
        }
        table = sweep_table(by_value)
        title = f"sensitivity to {title}"
        draw = partial(_draw, table, name, f"{figure}: {title}")
        yield make_exhibit("observuvm", figure, title, table, draw)


def sweep_table(by_value: dict[Any, Results]) -> pl.DataFrame:
    """Return a row per value: the mean time of each system over UVM's, and each application's."""
    rows = []
    for value, results in by_value.items():
        row: dict[str, Any] = {"value": str(value)}
        for system in SYSTEMS:
            ratios = results.ratios(system, BASE)
            row[system] = mean_of(ratios).value
            row |= {f"{system} {a}": ratio for a, ratio in ratios.items()}
        rows.append(row)
    return pl.DataFrame(rows)


def _draw(table: pl.DataFrame, name: str, title: str) -> Figure:
    figure, axes = new_axes(5.5, 3.2, title, xlabel=name, ylabel="mean time over uvm's")
    for system, colour in zip(SYSTEMS, COLOURS, strict=False):
        axes.plot(table["value"], table[system], marker="o", color=colour, label=system)
    axes.legend(frameon=False, fontsize=8)
    axes.set(ylim=(0, None))
    return figure
