"""Pictures that several papers need, above all bars by application: a group for each, a bar per
system, the geometric mean at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from tidegate.display.figures import COLOURS
from tidegate.papers.comparisons import Mean, mean_of

HIGHEST = 2.0  # bars above are cut off and labelled, so that one does not flatten the others
LINE = {"color": "#444444", "linewidth": 0.8}  # of reference


def new_axes(width: float, height: float, title: str = "", **settings: Any) -> tuple[Figure, Any]:
    """Return a figure and its one panel."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.set(**settings)
    axes.set_title(title, fontsize=10)
    return figure, axes


def new_panels(
    names: Sequence[Any], columns: int, width: float, height: float, more: float = 0
) -> Any:
    """Return a figure and a panel for each name; ``more`` height is for a legend."""
    columns = min(columns, len(names))
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(width * columns, height * rows + more), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    return figure, panels[: len(names)]


def side_by_side(groups: int, bars: int, i: int, width: float = 0.84) -> tuple[Any, float]:
    """Return where the bars of series ``i`` stand, and how wide one is."""
    each = width / max(1, bars)
    return np.arange(groups) + (i - (bars - 1) / 2) * each, each


def stack_bars(axes: Any, columns: dict[str, Sequence[float]], fontsize: int = 8) -> None:
    """Draw one bar per row, its columns on top of each other."""
    bottom = np.zeros(len(next(iter(columns.values()))))
    for i, (label, heights) in enumerate(columns.items()):
        axes.bar(range(len(bottom)), heights, 0.8, bottom=bottom, label=label, color=COLOURS[i])
        bottom = bottom + np.array(heights)
    if len(bottom):
        axes.legend(frameon=False, fontsize=fontsize)


def legend_of(figure: Figure, axes: Any, columns: int, where: str = "lower") -> None:
    """Draw the legend of one panel outside all panels."""
    style: dict[str, Any] = {"loc": f"outside {where} center", "ncols": columns}
    figure.legend(*axes.get_legend_handles_labels(), **style, frameon=False, fontsize=8)


def grouped_bars(
    table: pl.DataFrame, systems: Sequence[str], title: str, label: str, highest: float = HIGHEST
) -> Figure:
    """Draw each application's ratios, and their geometric mean with and without the applications
    that dominate it.
    """
    means = means_of(table, systems)
    dominated = any(m.dominators for m in means.values())
    groups = [*table["application"], "mean", *["without *"] * dominated]
    figure, axes = new_axes(11, 3.6, title, ylabel=label, xlim=(-0.6, len(groups) - 0.4))
    for i, system in enumerate(systems):
        at, width = side_by_side(len(groups), len(systems), i)
        own = [h if h is not None else np.nan for h in table[system]]
        heights = [*own, means[system].value, means[system].without][: len(groups)]
        shown = np.minimum(heights, highest)
        axes.bar(at, shown, width, label=system, color=COLOURS[i % len(COLOURS)])
        _label_cut(axes, at, heights, highest)
    axes.axhline(1, **LINE)
    axes.axvline(len(table) - 0.5, color="#bbbbbb", linewidth=0.8, linestyle=":")
    axes.set_xticks(range(len(groups)), groups, fontsize=9 if len(groups) < 20 else 7)
    axes.set_ylim(0, _top(table, systems, highest))
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.1), "ncols": len(systems)}
    axes.legend(**below, frameon=False, fontsize=8)
    if dominated:
        figure.supxlabel(f"* {dominators_text(means)}", fontsize=8, color="#444444")
    return figure


def sweep_table(
    by_value: Mapping[str, Mapping[str, Mapping[str, float]]],
    mean: Callable[[Mapping[str, float]], float],
) -> pl.DataFrame:
    """Return a row per value of an option: the mean of each series, and each application's ratio.

    ``by_value``: value → series → application → ratio.
    """
    rows = []
    for value, series in by_value.items():
        row: dict[str, Any] = {"value": value}
        for name, ratios in series.items():
            row[name] = mean(ratios)
            row |= {f"{name} {a}": ratio for a, ratio in ratios.items()}
        rows.append(row)
    return pl.DataFrame(rows)


def sweep_lines(
    table: pl.DataFrame, series: Mapping[str, str], title: str, x: str, y: str
) -> Figure:
    """Draw the series, column → label, over the values of an option; absent ones are left out."""
    figure, axes = new_axes(5.5, 3.2, title, xlabel=x, ylabel=y)
    for (column, label), colour in zip(series.items(), COLOURS, strict=False):
        if column in table.columns:
            axes.plot(table["value"], table[column], marker="o", color=colour, label=label)
    axes.legend(frameon=False, fontsize=8)
    axes.set(ylim=(0, None))
    return figure


def means_of(table: pl.DataFrame, systems: Sequence[str]) -> dict[str, Mean]:
    """Return the mean of each system's column."""
    means = {}
    for s in systems:
        rows = zip(table["application"], table[s], strict=True)
        ratios = {name: ratio for name, ratio in rows if ratio is not None}
        means[s] = mean_of(ratios) if ratios else Mean(float("nan"), float("nan"), ())
    return means


def dominators_text(means: dict[str, Mean]) -> str:
    """Return which applications dominate which mean.

    >>> dominators_text({"tm": Mean(0.7, 0.8, ("SPM", "BLK")), "uvm": Mean(1, 1, ())})
    'without the applications that dominate the mean: tm: SPM, BLK'
    """
    named = "; ".join(f"{s}: {', '.join(m.dominators)}" for s, m in means.items() if m.dominators)
    return f"without the applications that dominate the mean: {named}"


def _label_cut(axes: Any, at: Any, heights: Sequence[float], highest: float) -> None:
    style = {"ha": "center", "va": "bottom", "fontsize": 6, "rotation": 90}
    for x, height in zip(at, heights, strict=True):
        if height > highest:
            axes.text(x, highest * 1.015, f"{height:.1f}", **style)


def _top(table: pl.DataFrame, systems: Sequence[str], highest: float) -> float:
    top = max((v for s in systems for v in table[s] if v is not None), default=1.0)
    return max(1.15, min(top, highest) * (1.12 if top > highest else 1.05))
