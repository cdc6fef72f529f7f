"""Figures 1, 2, 4, 5a and 6 beside the paper's words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from tidegate.figures import COLOURS
from tidegate.reproduce.hybrid.edges import SIZE, implicit_over_explicit
from tidegate.reproduce.hybrid.findings import MINIVITE
from tidegate.reproduce.hybrid.grid import Grid, by_application, mean_gain, traffic
from tidegate.reproduce.hybrid.setup import BASE, BASELINES, NEAR, PARTS
from tidegate.reproduce.report import Exhibit
from tidegate.reproduce.results import NotRun

FIGURE_1 = (*BASELINES, "host", "um", "um-pf")
FIGURE_4 = (*BASELINES, "um", "host", "lru", "rlm", "glm", "rdm")
# Parts of a run's time, and what a reader calls them.
_TIMES = {
    "compute": "compute s",
    "fault_handling": "faults s",
    "transfer_in": "in s",
    "transfer_out": "out s",
    "remote_access": "remote s",
    "policy_overhead": "policy s",
}

_WORDS = {
    "Figure 1": "UM_PF always outperforms UM_DEF for fitted workloads […]. Both UM_DEF and UM_PF suffer from severe "
    "performance degradation when the dataset is larger than the GPU memory. […] the average execution "
    "time of Host is 1.15× of that of Baseline, and 1.19× of that of UM_DEF. (2.3)",
    "Figure 2": "UM_DEF spends most of the execution time on GPU page fault processing. […] UM_PF does not suffer "
    "from the page fault overhead. […] The traffic volume is much larger than the workload size, which "
    "indicates the existence of data thrashing. (2.3)",
    "Figure 4": "when Baseline cannot work anymore, UM incurs significant data thrashing except in the case of nn. "
    "[…] The geometric mean speedup of Host, LRU, RLM, GLM, and RDM over UM is 8.2×, 8.5×, 3.7×, 15.7×, "
    "and 18.7×. (5.2)",
    "Figure 5a": "the CPU-GPU traffic is significantly reduced under RDM […]. Roughly 90% of traffic for backprop and "
    "kmeans is eliminated. (5.2)",
    "Figure 6": "exploiting reuse distance alone brings significant performance benefits […]. Combining implicit and "
    "explicit data transfer outperforms the cases when only one of them is used, by a large margin. […] "
    "partial mapping brings an additional 0.7× improvement. […] RDM achieves an overall speedup of 7.6×. "
    "(5.2)",
    "Edge density": "When we change the percentage of edges that are actually accessed from 0% to 100%, we find that the "
    "execution time when transferring edges implicitly varies between 29% and 303% of that using explicit "
    "transfer. (5.2)",
}


def figures_of(grid: Grid) -> Iterator[Exhibit]:
    """Each figure for which there are runs."""
    for make in (_figure_1, _figure_2, _figure_4, _figure_5a, _figure_6, _edge_density):
        try:
            yield make(grid)
        except NotRun:
            continue


def times(grid: Grid, schemes: Sequence[str], among: Sequence[str] = ()) -> pl.DataFrame:
    """A row per workload: seconds under each scheme; empty where it was not run."""
    rows: list[dict[str, Any]] = []
    for a, size in grid.workloads(among=among):
        own = {
            s: grid.runs[a, size, s].time / 1e9 if (a, size, s) in grid.runs else None
            for s in schemes
        }
        rows.append({"application": a, "GB": float(size), **own})
    if not rows:
        raise NotRun(f"{', '.join(among) or 'nothing'} was not run")
    return pl.DataFrame(
        rows,
        schema={"application": pl.String, "GB": pl.Float64, **dict.fromkeys(schemes, pl.Float64)},
    )


def _figure_1(grid: Grid) -> Exhibit:
    table = times(grid, FIGURE_1, [MINIVITE])
    title = "miniVite's shape under four ways of managing memory, seconds"
    return Exhibit(
        "Figure 1",
        title,
        _WORDS["Figure 1"],
        table,
        partial(_lines, table, FIGURE_1),
        _host_notes(grid),
    )


def _host_notes(grid: Grid) -> tuple[str, ...]:
    notes = []
    for base in (*BASELINES, BASE):
        try:
            ratio = 1 / mean_gain(grid.gains("host", base, True, [MINIVITE]))
            notes.append(f"What fits: host takes {ratio:.2f} times as long as {base}, on average.")
        except NotRun:
            continue
    return tuple(notes)


def _figure_2(grid: Grid) -> Exhibit:
    """Parts of time, and the traffic each way."""
    rows: list[dict[str, Any]] = []
    for a, size in grid.workloads(among=[MINIVITE]):
        for scheme in (*BASELINES, BASE, "um-pf"):
            run = grid.runs.get((a, size, scheme))
            if run is not None:
                page = run.facts["page_bytes"] / 1e9
                moved = {
                    "in GB": run.counts["pages_in"] * page,
                    "out GB": run.counts["pages_written_back"] * page,
                }
                times = {name: run.parts[p] / 1e9 for p, name in _TIMES.items()}
                rows.append({"GB": float(size), "scheme": scheme, **times, **moved})
    if not rows:
        raise NotRun("miniVite's shape was not run")
    table = pl.DataFrame(rows)
    title = "miniVite's shape: parts of time in seconds (of faults also unmapping), and traffic"
    return Exhibit("Figure 2", title, _WORDS["Figure 2"], table, partial(_stacks, table))


def _figure_4(grid: Grid) -> Exhibit:
    table = times(grid, FIGURE_4)
    title = f"time in seconds; what is larger than {NEAR} GB does not fit"
    return Exhibit("Figure 4", title, _WORDS["Figure 4"], table, partial(_lines, table, FIGURE_4))


def _figure_5a(grid: Grid) -> Exhibit:
    shares = {
        base: by_application(grid.gains(base, "rdm", True, what=traffic)) for base in BASELINES
    }
    names = list(shares["baseline"])
    table = pl.DataFrame(
        {
            "application": names,
            **{f"over {b}": [own.get(a) for a in names] for b, own in shares.items()},
        }
    )
    title = "bytes over the link under RDM, over the baseline's; what fits"
    return Exhibit("Figure 5a", title, _WORDS["Figure 5a"], table, partial(_bars, table, title))


def _figure_6(grid: Grid) -> Exhibit:
    if not grid.workloads():
        raise NotRun("nothing was run")
    rows = [
        {
            "part": part,
            **{
                name: mean_gain(grid.gains(part, fits=fits))
                for name, fits in (("all", None), ("fits", True), ("does not fit", False))
                if grid.workloads(fits)
            },
        }
        for part in PARTS
    ]
    table = pl.DataFrame(rows)
    title = f"RDM taken apart: geometric mean speed-up over {BASE}"
    return Exhibit("Figure 6", title, _WORDS["Figure 6"], table, partial(_bars, table, title))


def _edge_density(grid: Grid) -> Exhibit:
    ratios = implicit_over_explicit(grid.edges)
    table = pl.DataFrame(
        {
            "edges accessed": [f"{s:.0%}" for s in ratios],
            "implicit over explicit": list(ratios.values()),
        }
    )
    title = f"bfs of {SIZE:g} GB: time with edges left to faults, over time with edges prefetched"
    note = "The accessed edges are those of the first vertices. Where else they lie would not matter at 0 % and at 100 %."
    return Exhibit(
        "Edge density", title, _WORDS["Edge density"], table, partial(_bars, table, title), (note,)
    )


# Pictures

_MARKERS = "osd^v<>P"  # lines that lie on one another are told apart by them


def _lines(table: pl.DataFrame, schemes: Sequence[str]) -> Figure:
    """Time against size, a panel per application, with a line where near memory ends."""
    names = list(dict.fromkeys(table["application"]))
    columns = min(4, len(names))
    figure = Figure(
        figsize=(3.2 * columns + 1, 2.9 * -(-len(names) // columns)), layout="constrained"
    )
    panels = figure.subplots(-(-len(names) // columns), columns, squeeze=False).flat
    for axes, name in zip(panels, names, strict=False):
        own = table.filter(pl.col("application") == name)
        for i, scheme in enumerate(schemes):
            how = {
                "marker": _MARKERS[i],
                "markersize": 5,
                "markerfacecolor": "none",
                "linewidth": 1.2,
            }
            axes.plot(own["GB"], own[scheme], color=COLOURS[i % len(COLOURS)], label=scheme, **how)  # type: ignore[arg-type]
        axes.axvline(NEAR, color="#444444", linewidth=0.8)
        axes.set(title=name, yscale="linear" if name == "nn" else "log", xlabel="GB", ylabel="s")
        axes.title.set_fontsize(9)
    for axes in list(panels)[len(names) :]:
        axes.set_axis_off()
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize=8,
    )
    return figure


def _bars(table: pl.DataFrame, title: str) -> Figure:
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    axes = figure.subplots()
    labels, series = table.columns[0], table.columns[1:]
    width = 0.8 / len(series)
    for i, column in enumerate(series):
        at = [x + (i - (len(series) - 1) / 2) * width for x in range(len(table))]
        axes.bar(at, table[column], width, label=column, color=COLOURS[i])
    axes.axhline(1, color="#444444", linewidth=0.8)
    axes.set_xticks(range(len(table)), table[labels].to_list())
    axes.set_title(title, fontsize=10)
    figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize=8,
    )
    return figure


def _stacks(table: pl.DataFrame) -> Figure:
    """As the paper has it: the parts of time where everything fits, the traffic where it does not."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    fits = pl.col("GB") < NEAR
    panels = (
        (tuple(_TIMES.values()), "s", table.filter(fits), "fits"),
        (("in GB", "out GB"), "GB", table.filter(~fits), "does not fit"),
    )
    for axes, (parts, label, own, title) in zip(figure.subplots(1, 2), panels, strict=True):
        bottom = [0.0] * len(own)
        for i, part in enumerate(parts):
            axes.bar(
                range(len(own)),
                own[part],
                0.8,
                bottom=bottom,
                label=part.rpartition(" ")[0],
                color=COLOURS[i],
            )
            bottom = [b + v for b, v in zip(bottom, own[part], strict=True)]
        names = [f"{size:g} {scheme}" for size, scheme in own.select("GB", "scheme").rows()]
        axes.set_xticks(range(len(own)), names, rotation=90, fontsize=7)
        axes.set_ylabel(label)
        axes.set_title(title, fontsize=10)
        if len(own):
            axes.legend(frameon=False, fontsize=7)
    return figure
