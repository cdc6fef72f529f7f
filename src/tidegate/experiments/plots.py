"""Figures of runs and comparisons."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from tidegate import units
from tidegate.experiments.comparison import Comparison
from tidegate.experiments.runs import Run
from tidegate.figures import COLOURS

_PART_COLOURS = {
    "compute": "#009E73",
    "fault_handling": "#D55E00",
    "transfer_in": "#0072B2",
    "transfer_out": "#56B4E9",
    "remote_access": "#CC79A7",
    "policy_overhead": "#8c8c8c",
    "storage_read": "#E69F00",
    "storage_write": "#8c8c8c",
}
_MOVED = {  # by the SSD and host memory of three tiers, in pages
    "middle_hits": ("found in the middle", "#0072B2"),
    "far_reads": ("read from the SSD", "#E69F00"),
    "far_writes": ("written to the SSD", "#8c8c8c"),
}


def plot_run(run: Run) -> Figure:
    """Draw rates over time and the parts of time; for three tiers, parts and traffic."""
    if "tiering" in run.facts:
        return plot_comparison(Comparison([run], [str(run.facts["tiering"])], "tiering"))
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
    _time_by_parts(parts, [run], [str(run.facts["eviction"])], scale, unit)
    f = run.facts
    policies = f"{f['eviction']} + {f['prefetch']} + {f['placement']}"
    sizes = f"{units.show_size(f['footprint_bytes'])} in {units.show_size(f['near_bytes'])}"
    figure.suptitle(f"{f['workload']} · {policies} · {sizes} · {f['machine']}", fontsize=10)
    return figure


def _rates(axes: Any, run: Run, scale: float, unit: str) -> None:
    """Draw faults and traffic per interval of time."""
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
    """Draw time by parts at the middle size, then what was moved or evicted there, or time over
    size where there are several.
    """
    near = comparison.sizes[len(comparison.sizes) // 2]
    runs = [comparison.run(p, near) for p in comparison.policies]
    tiered, several = comparison.compared == "tiering", len(comparison.sizes) > 1
    panels = 2 + (tiered and several)
    size = (3 + 4 * panels, 0.42 * len(runs) + 2.4)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(1, panels)
    scale, unit = _time_unit(max(r.time for r in comparison.runs))
    _time_by_parts(axes[0], runs, comparison.policies, scale, unit)
    if tiered:
        _moved(axes[1], runs)
    if several:
        _over_size(axes[-1], comparison, scale, unit)
    elif not tiered:
        _evictions(axes[1], runs)
    f = max(runs, key=lambda r: r.facts.get("middle_bytes", 0)).facts  # two-tier policies have 0
    over = (
        f"middle {units.show_size(f['middle_bytes'])}"
        if tiered
        else f"{f['footprint_bytes'] / near - 1:.0%} oversubscribed"
    )
    axes[0].set_title(f"near {units.show_size(near)} ({over})", fontsize=9)
    footprint = units.show_size(f["footprint_bytes"])
    title = f"{f['workload']}, {footprint} · {comparison.others}{f['machine']}"
    figure.suptitle(title, fontsize=10)
    return figure


def _time_by_parts(
    axes: Any, runs: Sequence[Run], labels: Iterable[str], scale: float, unit: str
) -> None:
    _stack(
        axes,
        [
            (part.replace("_", " "), colour, [r.parts.get(part, 0) / scale for r in runs])
            for part, colour in _PART_COLOURS.items()
        ],
    )
    axes.set_yticks(range(len(runs)), list(labels))
    axes.set(xlabel=f"time ({unit})")
    axes.figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside lower center",
        ncols=6,
        frameon=False,
        fontsize=8,
    )


def _moved(axes: Any, runs: Sequence[Run]) -> None:
    page = runs[0].facts["page_bytes"] / units.GiB
    _stack(
        axes,
        [
            (label, colour, [r.counts[count] * page for r in runs])
            for count, (label, colour) in _MOVED.items()
        ],
    )
    axes.set_yticks(range(len(runs)), [""] * len(runs))
    axes.set(xlabel="GiB")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize=8)


def _stack(axes: Any, parts: Iterable[tuple[str, str, list[float]]]) -> None:
    """Draw a horizontal bar per run, of parts with a label and a colour."""
    left: Any = 0.0
    for label, colour, widths in parts:
        if any(widths):
            axes.barh(range(len(widths)), widths, left=left, color=colour, label=label)
            left = left + np.array(widths)
    axes.invert_yaxis()


def _line_style(i: int, bound: bool) -> dict[str, Any]:
    """Return the style of the i-th policy's line: its rings shrink, so that lines that coincide
    can all be seen.
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
    sizes = [near / units.MiB for near in comparison.sizes]
    for i, policy in enumerate(comparison.policies):
        times = [comparison.run(policy, near).time / scale for near in comparison.sizes]
        bound = policy.startswith(("belady", "tier-belady"))
        axes.plot(sizes, times, label=policy, **_line_style(i, bound))
    axes.set(xlabel="near memory (MiB)", ylabel=f"time ({unit})", ylim=(0, None))
    axes.legend(fontsize=8, frameon=False)


def _evictions(axes: Any, runs: Sequence[Run]) -> None:
    counts = [r.counts["evictions"] for r in runs]
    axes.barh(range(len(counts)), counts, color=COLOURS[6])
    axes.set_yticks(range(len(counts)), [""] * len(counts))
    axes.invert_yaxis()
    axes.set(xlabel="evictions")


def _time_unit(ns: float) -> tuple[float, str]:
    units_of_time = ((units.S, "s"), (units.MS, "ms"))
    return next(((scale, unit) for scale, unit in units_of_time if ns >= scale), (units.US, "µs"))


def summary_html(run: Run) -> str:
    """Return a run as a small table, for notebooks."""
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
    policies = html.escape(f"{f['eviction']} + {f['prefetch']}")
    title = f"<b>{html.escape(f['workload'])}</b> · {policies}"
    stored = "from the store; <code>cache=False</code> computes it anew" if run.from_store else ""
    return f"{title}<table>{rows}</table>{stored}"
