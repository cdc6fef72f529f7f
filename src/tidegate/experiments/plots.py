"""Pictures of runs and comparisons."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from tidegate import units
from tidegate.experiments.runs import PARTS, Run
from tidegate.figures import COLOURS

if TYPE_CHECKING:
    from tidegate.experiments.comparison import Comparison

_PART_COLOURS = dict(
    zip(PARTS, ("#009E73", "#D55E00", "#0072B2", "#56B4E9", "#CC79A7", "#8c8c8c"), strict=True)
)


def plot_run(run: Run) -> Figure:
    """Rates over time above, the parts of time below."""
    figure = Figure(figsize=(9, 5.6), layout="constrained")
    rates, memory, parts = figure.subplots(3, 1, height_ratios=(3, 1.3, 1))
    scale, unit = _time_unit(run.time)
    t = run.timeline
    _rates(rates, run, scale, unit)
    if len(t):
        memory.plot(t["time"] / scale, t["frames_used"], color=COLOURS[0])
    memory.axhline(
        run.facts["near_bytes"] / run.facts["region_bytes"],
        color="#8c8c8c",
        linestyle=":",
        linewidth=1,
    )
    memory.set(
        ylabel="frames in use", xlim=(0, run.time / scale), ylim=(0, None), xlabel=f"time ({unit})"
    )
    _stack(parts, [run], [str(run.facts["eviction"])], scale)
    parts.set(xlabel=f"time ({unit})")
    figure.legend(
        *parts.get_legend_handles_labels(),
        loc="outside lower center",
        ncols=6,
        frameon=False,
        fontsize=8,
    )
    f = run.facts
    figure.suptitle(
        f"{f['workload']} · {f['eviction']} + {f['prefetch']} + {f['placement']} · "
        f"{units.show_size(f['footprint_bytes'])} in {units.show_size(f['near_bytes'])} · {f['machine']}",
        fontsize=10,
    )
    return figure


def _rates(axes: Any, run: Run, scale: float, unit: str) -> None:
    """Faults, evictions and traffic per stretch of time."""
    t = run.timeline
    edges = np.linspace(0, run.time, 121)
    time = np.concatenate([[0], t["time"].to_numpy()]) if len(t) else np.zeros(1)
    middle = (edges[1:] + edges[:-1]) / 2 / scale
    for column, name, factor, colour in (
        ("pages_in", "in", run.facts["page_bytes"], COLOURS[0]),
        ("pages_written_back", "out", run.facts["page_bytes"], COLOURS[5]),
    ):
        total = np.concatenate([[0], t[column].to_numpy()]) if len(t) else np.zeros(1)
        moved = np.diff(np.interp(edges, time, total)) * factor
        axes.plot(middle, moved / np.diff(edges), label=f"link {name}", color=colour)
    axes.set(ylabel="GB/s", xlim=(0, run.time / scale), ylim=(0, None))
    other = axes.twinx()
    total = np.concatenate([[0], t["faults"].to_numpy()]) if len(t) else np.zeros(1)
    faults = np.diff(np.interp(edges, time, total)) / (np.diff(edges) / units.MS)
    other.fill_between(middle, faults, color=COLOURS[3], alpha=0.25, label="faults")
    other.set(ylabel="faults per ms", ylim=(0, None))
    handles = [*axes.get_legend_handles_labels()[0], *other.get_legend_handles_labels()[0]]
    axes.legend(handles=handles, loc="upper right", fontsize=8, frameon=False, ncols=3)


def plot_comparison(comparison: Comparison) -> Figure:
    """Left: time by parts at one size.

    Right: time over size, or evictions where there is one size only.
    """
    figure = Figure(figsize=(11, 0.42 * len(comparison.policies) + 2.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    near = comparison.sizes[len(comparison.sizes) // 2]
    runs = [comparison.run(p, near) for p in comparison.policies]
    scale, unit = _time_unit(max(r.time for r in comparison.runs))
    _stack(left, runs, comparison.policies, scale)
    over = runs[0].facts["footprint_bytes"] / near - 1
    left.set(
        xlabel=f"time ({unit})", title=f"near {units.show_size(near)} ({over:.0%} oversubscribed)"
    )
    left.title.set_fontsize(9)
    figure.legend(
        *left.get_legend_handles_labels(),
        loc="outside lower center",
        ncols=6,
        frameon=False,
        fontsize=8,
    )
    (_over_size if len(comparison.sizes) > 1 else _evictions)(right, comparison, scale, unit)
    f = runs[0].facts
    figure.suptitle(
        f"{f['workload']}, {units.show_size(f['footprint_bytes'])} · {comparison.prefetch}{f['machine']}",
        fontsize=10,
    )
    return figure


def _stack(axes: Any, runs: list[Run], labels: Iterable[str], scale: float) -> None:
    left = np.zeros(len(runs))
    rows = np.arange(len(runs))
    for part in PARTS:
        width = np.array([r.parts[part] for r in runs]) / scale
        if width.any():
            axes.barh(
                rows, width, left=left, color=_PART_COLOURS[part], label=part.replace("_", " ")
            )
            left += width
    axes.set_yticks(rows, list(labels))
    axes.invert_yaxis()


def line_style(i: int, bound: bool) -> Any:
    """Of the i-th policy's line: rings that shrink from one to the next, so that all are seen where
    they coincide.
    """
    if bound:
        return {"linestyle": "--", "color": "black"}
    return {
        "marker": "o",
        "markersize": max(3, 11 - 1.4 * i),
        "markerfacecolor": "none",
        "color": COLOURS[i % 7],
    }


def _over_size(axes: Any, comparison: Comparison, scale: float, unit: str) -> None:
    for i, policy in enumerate(comparison.policies):
        runs = [comparison.run(policy, near) for near in comparison.sizes]
        style = line_style(i, policy.startswith("belady"))
        axes.plot(
            [n / units.MiB for n in comparison.sizes],
            [r.time / scale for r in runs],
            label=policy,
            **style,
        )
    axes.set(xlabel="near memory (MiB)", ylabel=f"time ({unit})", ylim=(0, None))
    axes.legend(fontsize=8, frameon=False)


def _evictions(axes: Any, comparison: Comparison, scale: float, unit: str) -> None:
    counts = [
        comparison.run(p, comparison.sizes[0]).counts["evictions"] for p in comparison.policies
    ]
    axes.barh(range(len(counts)), counts, color=COLOURS[6])
    axes.set_yticks(range(len(counts)), [""] * len(counts))
    axes.invert_yaxis()
    axes.set(xlabel="evictions")


def _time_unit(ns: float) -> tuple[float, str]:
    return (
        (units.S, "s")
        if ns >= units.S
        else (units.MS, "ms")
        if ns >= units.MS
        else (units.US, "µs")
    )


def summary_html(run: Run) -> str:
    """A run as a small table, for notebooks."""
    shown = {
        "time": units.show_duration(run.time),
        **{p.replace("_", " "): f"{ns / run.time:.1%}" for p, ns in run.parts.items() if ns},
        **{c: f"{run.counts[c]:,}" for c in ("touches", "faults", "evictions")},
    }
    rows = "".join(
        f"<tr><th style='text-align:left'>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>"
        for k, v in shown.items()
    )
    f = run.facts
    title = f"<b>{html.escape(f['workload'])}</b> · {html.escape(f['eviction'])} + {html.escape(f['prefetch'])}"
    return f"{title}<table>{rows}</table>"
