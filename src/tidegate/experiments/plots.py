"""Figures of runs and comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from tidegate import units
from tidegate.display.figures import COLOURS
from tidegate.experiments.comparison import Comparison, Entry
from tidegate.experiments.runs import Run

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
_MARKERS = "os^vDPX<>hd*"
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 4)))
_LEGEND_ROWS = 40


def plot_run(run: Run) -> Figure:
    """Draw rates over time and the parts of time; for three tiers, parts and traffic."""
    if "tiering" in run.facts:
        return plot_comparison(_alone(run))
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
    _legend_of_parts(figure, [parts])
    f = run.facts
    policies = f"{f['eviction']} + {f['prefetch']} + {f['placement']}"
    sizes = f"{units.show_size(f['footprint_bytes'])} in {units.show_size(f['near_bytes'])}"
    figure.suptitle(f"{f['workload']} · {policies} · {sizes} · {f['machine']}", fontsize=10)
    return figure


def _alone(run: Run) -> Comparison:
    """Return a comparison of one run over three tiers."""
    f = run.facts
    entry = Entry(
        workload=f["workload"],
        provenance=f["provenance"],
        machine=f["machine"],
        near=f["near_bytes"],
        footprint=f["footprint_bytes"],
        policy=f["tiering"],
        run=run,
    )
    return Comparison([entry], "tiering")


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
    size where there are several: a row for each workload and machine.
    """
    parts = comparison.parts
    several = any(len(part.sizes) > 1 for part in parts)
    tiered = comparison.compared == "tiering"
    panels = 2 + (tiered and several)
    lines = len(comparison.policies)
    width = 3 + 4 * panels + (2.4 if several else 0)  # the legend of the lines is beside them
    figure = Figure(figsize=(width, len(parts) * (0.42 * lines + 1.6) + 0.8), layout="constrained")
    grid = figure.subplots(len(parts), panels, squeeze=False)
    for part, axes in zip(parts, grid, strict=True):
        _draw_part(axes, part, several)
        if len(parts) > 1:
            above = axes[0].get_title()
            axes[0].set_title(f"{_title(part)}\n{above}", fontsize=9)
    _legend_of_parts(figure, [axes[0] for axes in grid])
    if len(parts) == 1:
        figure.suptitle(_title(parts[0]), fontsize=10)
    return figure


def _title(part: Comparison) -> str:
    e = part.entries[0]
    return f"{e.workload}, {units.show_size(e.footprint)} · {part.others}{e.machine}"


def _draw_part(axes: Any, part: Comparison, several: bool) -> None:
    near = part.sizes[len(part.sizes) // 2]
    entries = [part.entry(p, near) for p in part.policies]
    runs = [e.run for e in entries if e.run is not None]
    labels = [e.policy for e in entries if e.run is not None]
    tiered = part.compared == "tiering"
    scale, unit = _time_unit(max((r.time for r in part.runs), default=0.0))
    _time_by_parts(axes[0], runs, labels, scale, unit)
    if tiered:
        _moved(axes[1], runs)
    if several:
        _over_size(axes[-1], part, scale, unit)
    elif not tiered:
        _evictions(axes[1], runs)
    middle = max((r.facts.get("middle_bytes", 0) for r in runs), default=0)
    fit = units.show_fit(entries[0].footprint, near)
    over = f"middle {units.show_size(middle)}" if tiered else fit
    title = f"near {units.show_size(near)} ({over})"
    if failed := [e.policy for e in entries if e.run is None]:
        title += f"\nfailed: {', '.join(failed)}"
    axes[0].set_title(title, fontsize=9)


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


def _legend_of_parts(figure: Figure, all_axes: Iterable[Any]) -> None:
    """Name the parts of time below everything, each once."""
    found: dict[str, Any] = {}
    for axes in all_axes:
        handles, labels = axes.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    order = [part.replace("_", " ") for part in _PART_COLOURS]
    shown = {label: found[label] for label in order if label in found}
    if shown:
        figure.legend(
            shown.values(), shown, loc="outside lower center", ncols=6, frameon=False, fontsize=8
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
    """Return the style of the i-th policy's line. No two of the first 84 are alike: the colour
    changes with each line, the dashes with each seven, the marker with each of them. Markers are
    hollow and shrink, so that lines that coincide can all be seen.
    """
    if bound:
        return {"linestyle": "--", "color": "black", "linewidth": 1.2}
    return {
        "marker": _MARKERS[i % len(_MARKERS)],
        "markersize": max(4, 11 - 1.4 * (i % 7)),
        "markerfacecolor": "none",
        "color": COLOURS[i % 7],
        "linestyle": _DASHES[i // 7 % len(_DASHES)],
        "linewidth": 1.2,
    }


def _over_size(axes: Any, part: Comparison, scale: float, unit: str) -> None:
    for i, policy in enumerate(part.policies):
        entries = [part.entry(policy, near) for near in part.sizes]
        points = [(e.near / units.MiB, e.run.time / scale) for e in entries if e.run is not None]
        if points:
            bound = policy.startswith(("belady", "tier-belady"))
            axes.plot(*zip(*points, strict=True), label=policy, **_line_style(i, bound))
    axes.set(xlabel="near memory (MiB)", ylabel=f"time ({unit})", ylim=(0, None))
    axes.set_ylim(0, 1.06 * axes.get_ylim()[1])  # markers at the top are whole
    handles, labels = axes.get_legend_handles_labels()
    columns = -(-len(labels) // _LEGEND_ROWS)
    axes.legend(
        handles,
        labels,
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0,
        ncols=max(1, columns),
        fontsize=8,
        frameon=False,
        handlelength=3.5,
    )


def _evictions(axes: Any, runs: Sequence[Run]) -> None:
    counts = [r.counts["evictions"] for r in runs]
    axes.barh(range(len(counts)), counts, color=COLOURS[1])  # of no part of time here
    axes.set_yticks(range(len(counts)), [""] * len(counts))
    axes.invert_yaxis()
    axes.set(xlabel="evictions")


def _time_unit(ns: float) -> tuple[float, str]:
    units_of_time = ((units.S, "s"), (units.MS, "ms"))
    return next(((scale, unit) for scale, unit in units_of_time if ns >= scale), (units.US, "µs"))
