"""A figure of a sweep's table: lines over one column, a picture for each workload."""

from __future__ import annotations

import json

import polars as pl
from matplotlib.figure import Figure

from tidegate.display.figures import COLOURS
from tidegate.errors import TidegateError, UnknownName

PICTURES, LINES = 12, 24  # at most; a figure with more cannot be read
# columns to draw over, if they have several values; the settings' own names come first
_OVER = ("oversubscribe", "fits", "near_bytes", "slots", "footprint_bytes")
_BY = ("system", "tiering", "eviction", "prefetch", "placement", "machine")


def plot_sweep(
    rows: pl.DataFrame, x: str | None = None, y: str = "time_ns", by: str | None = None
) -> Figure:
    """Draw ``y`` over ``x``: the mean of the runs at each place, with a band from least to most."""
    if not rows.height:
        raise TidegateError("none of the sweep's runs is done, so there is nothing to draw")
    rows = _with_settings(rows)
    x = x or _choose(rows, _OVER, "near_bytes")
    by = by or _choose(rows, _BY, "eviction")
    for column in (x, y, by):
        if column not in rows.columns:
            raise UnknownName("column", column, rows.columns)
    if not rows[y].dtype.is_numeric():
        raise TidegateError(f"y must be a column of numbers, such as faults, got {y}")
    workloads = rows["workload"].unique(maintain_order=True).to_list()
    kinds = rows[by].cast(pl.String).unique(maintain_order=True).to_list()
    if len(workloads) > PICTURES or len(kinds) > LINES:
        raise TidegateError(
            f"a figure has room for {PICTURES} workloads and {LINES} lines, got {len(workloads)} "
            f"and {len(kinds)}; use 'tidegate sweep table --csv' and draw a part of it"
        )
    wide = min(3, len(workloads))
    tall = -(-len(workloads) // wide)
    figure = Figure(figsize=(1.5 + 3.6 * wide, 1 + 2.8 * tall), layout="constrained")
    axes = figure.subplots(tall, wide, squeeze=False).flatten()
    for axis, workload in zip(axes, workloads, strict=False):
        _draw(axis, rows.filter(pl.col("workload") == workload), x, y, by, kinds)
        axis.set_title(workload, fontsize=9)
    for axis in axes[len(workloads) :]:
        axis.set_visible(False)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", title=by)
    return figure


def _with_settings(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the settings that have no column of their own, such as the system."""
    given = [json.loads(text) for text in rows["settings"]]
    names = dict.fromkeys(name for settings in given for name in settings)
    new = [
        pl.Series(name, [None if (v := s.get(name)) is None else str(v) for s in given])
        for name in names
        if name not in rows.columns
    ]
    return rows.with_columns(new)


def _choose(rows: pl.DataFrame, among: tuple[str, ...], otherwise: str) -> str:
    several = (c for c in among if c in rows.columns and rows[c].n_unique() > 1)
    return next(several, otherwise)


def _draw(axis: object, rows: pl.DataFrame, x: str, y: str, by: str, kinds: list[str]) -> None:
    means = rows.group_by(pl.col(by).cast(pl.String).alias("kind"), x, maintain_order=True).agg(
        pl.col(y).mean().alias("mean"), pl.col(y).min().alias("least"), pl.col(y).max()
    )
    if rows[x].dtype.is_numeric():
        means = means.sort(x)
    scale, label = (1e9, y.removesuffix("_ns") + " (s)") if y.endswith("_ns") else (1.0, y)
    for i, kind in enumerate(kinds):
        own = means.filter(pl.col("kind") == kind)
        colour = COLOURS[i % len(COLOURS)]
        style = ("-", "--", ":")[i // len(COLOURS) % 3]
        at = own[x].to_list()
        axis.plot(at, own["mean"] / scale, style, marker="o", ms=3, color=colour, label=kind)  # type: ignore[attr-defined]
        if (own["least"] < own[y]).any():
            axis.fill_between(at, own["least"] / scale, own[y] / scale, color=colour, alpha=0.2)  # type: ignore[attr-defined]
    axis.set(xlabel=x, ylabel=label, ylim=(0, None))  # type: ignore[attr-defined]
    axis.tick_params(labelsize=8)  # type: ignore[attr-defined]
