"""The sensitivity study (VI-A): other thresholds, intervals and chunks.

The paper's values are not in our copy, so nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from statistics import geometric_mean
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from tidegate.display.figures import COLOURS
from tidegate.papers.cppe.grid import SWEPT, sweep_group
from tidegate.papers.cppe.setup import Setup
from tidegate.papers.pictures import new_axes
from tidegate.papers.report import Exhibit, make_exhibit
from tidegate.papers.results import Groups, Results

BASE, CPPE = SWEPT


def sweep_figures(setup: Setup, groups: Groups) -> Iterator[Exhibit]:
    """Yield a figure for each option that has several values."""
    for name in setup.swept():
        by_value = {
            value: {
                level: groups[
                    level if value == setup.main(name) else sweep_group(name, value, level)
                ]
                for level in setup.levels
            }
            for value in getattr(setup, name)
        }
        table = sweep_table(by_value)
        title = f"sensitivity of CPPE to {name}"
        draw = partial(_draw, table, name, setup.levels)
        yield make_exhibit("cppe", f"Sensitivity {name}", title, table, draw)


def sweep_table(by_value: Mapping[Any, Mapping[str, Results]]) -> pl.DataFrame:
    """Return a row per value: CPPE's mean speed-up at each level, and each application's."""
    rows = []
    for value, levels in by_value.items():
        ratios = {level: results.ratios(BASE, CPPE) for level, results in levels.items()}
        row: dict[str, Any] = {"value": str(value)}
        row |= {level: geometric_mean(own.values()) for level, own in ratios.items()}
        for level, own in ratios.items():
            row |= {f"{a} {level}": ratio for a, ratio in own.items()}
        rows.append(row)
    return pl.DataFrame(rows)


def _draw(table: pl.DataFrame, name: str, levels: tuple[str, ...]) -> Figure:
    labels = {"xlabel": name, "ylabel": f"mean speed-up over {BASE}"}
    figure, axes = new_axes(5.5, 3.2, f"Sensitivity of CPPE to {name}", **labels)
    for level, colour in zip(levels, COLOURS, strict=False):
        axes.plot(table["value"], table[level], marker="o", color=colour, label=f"{level} fits")
    axes.legend(frameon=False, fontsize=8)
    axes.set(ylim=(0, None))
    return figure
