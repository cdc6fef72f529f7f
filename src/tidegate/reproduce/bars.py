"""Bars by application, as the papers draw them: one group each, a bar per system, the mean at the
end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from tidegate.figures import COLOURS
from tidegate.reproduce.means import Mean, mean_of

# bars above are cut off and labelled, so that one application does not flatten the others
HIGHEST = 2.0


def grouped_bars(
    table: pl.DataFrame, systems: Sequence[str], title: str, label: str, highest: float = HIGHEST
) -> Figure:
    """Each application's ratios, and their geometric mean with and without the applications that
    dominate it.
    """
    means = means_of(table, systems)
    groups = [
        *table["application"],
        "mean",
        *(["without *"] if any(m.dominators for m in means.values()) else []),
    ]
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    axes = figure.subplots()
    width = 0.84 / len(systems)
    for i, system in enumerate(systems):
        heights = [h if h is not None else np.nan for h in table[system]] + [
            means[system].value,
            means[system].without,
        ]
        at = np.arange(len(groups)) + (i - (len(systems) - 1) / 2) * width
        shown = np.minimum(heights[: len(groups)], highest)
        axes.bar(at, shown, width, label=system, color=COLOURS[i % len(COLOURS)])
        _label_cut(axes, at, heights[: len(groups)], highest)
    axes.axhline(1, color="#444444", linewidth=0.8)
    axes.axvline(len(table) - 0.5, color="#bbbbbb", linewidth=0.8, linestyle=":")
    axes.set_xticks(range(len(groups)), groups, fontsize=9 if len(groups) < 20 else 7)
    axes.set(
        title=title,
        ylabel=label,
        xlim=(-0.6, len(groups) - 0.4),
        ylim=(0, _top(table, systems, highest)),
    )
    axes.title.set_fontsize(10)
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.1),
        ncols=len(systems),
        frameon=False,
        fontsize=8,
    )
    if "without *" in groups:
        figure.supxlabel(f"* {dominators_text(means)}", fontsize=8, color="#444444")
    return figure


def means_of(table: pl.DataFrame, systems: Sequence[str]) -> dict[str, Mean]:
    """The mean of each system's column."""
    names = table["application"].to_list()
    columns = {
        s: {n: v for n, v in zip(names, table[s], strict=True) if v is not None} for s in systems
    }
    return {
        s: mean_of(column) if column else Mean(float("nan"), float("nan"), ())
        for s, column in columns.items()
    }


def dominators_text(means: dict[str, Mean]) -> str:
    """Which applications dominate which mean.

    >>> dominators_text({"tm": Mean(0.7, 0.8, ("SPM", "BLK")), "uvm": Mean(1, 1, ())})
    'without the applications that dominate the mean: tm: SPM, BLK'
    """
    told = "; ".join(f"{s}: {', '.join(m.dominators)}" for s, m in means.items() if m.dominators)
    return f"without the applications that dominate the mean: {told}"


def _label_cut(axes: Any, at: Any, heights: Sequence[float], highest: float) -> None:
    for x, height in zip(at, heights, strict=True):
        if height > highest:
            axes.text(
                x,
                highest * 1.015,
                f"{height:.1f}",
                ha="center",
                va="bottom",
                fontsize=6,
                rotation=90,
            )


def _top(table: pl.DataFrame, systems: Sequence[str], highest: float) -> float:
    top = max((v for s in systems for v in table[s] if v is not None), default=1.0)
    return max(1.15, min(top, highest) * (1.12 if top > highest else 1.05))
