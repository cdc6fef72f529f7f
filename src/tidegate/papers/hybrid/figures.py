"""Figures 1, 2, 4, 5, 6 and 7, and edge density."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from tidegate.display.figures import COLOURS
from tidegate.papers.hybrid.findings import MINIVITE
from tidegate.papers.hybrid.grid import (
    EDGE_SIZE,
    Schemes,
    by_application,
    implicit_over_explicit,
    mean_gain,
    traffic,
)
from tidegate.papers.hybrid.setup import BASE, BASELINE, LARGER, NEAR, PARTS
from tidegate.papers.pictures import LINE, legend_of, new_axes, new_panels, side_by_side, stack_bars
from tidegate.papers.report import Exhibit, make_exhibit
from tidegate.papers.results import Groups, NotRun

FIGURE_1 = (BASELINE, "host", "um", "um-pf")
FIGURE_4 = (BASELINE, "um", "host", "lru", "rlm", "glm", "rdm")
FIGURE_5B = ("um", "host", "lru", "rlm", "glm", "rdm")
# Parts of a run's time, and their columns.
_TIMES = {
    "compute": "compute s",
    "fault_handling": "faults s",
    "transfer_in": "in s",
    "transfer_out": "out s",
    "remote_access": "remote s",
    "policy_overhead": "policy s",
}
_MOVED = {"pages_in": "in GB", "pages_written_back": "out GB"}
_EDGE_NOTE = (
    "The accessed edges are those of the first vertices. Where else they lie would not matter at "
    "0 % and at 100 %."
)


def figures_of(groups: Groups) -> Iterator[Exhibit]:
    """Yield each figure for which there are runs."""
    r = Schemes.from_groups(groups)
    for make in (_figure_1, _figure_2, _figure_4, _figure_5a, _figure_5b, _figure_6, _figure_7):
        with suppress(NotRun):
            yield make(r)
    with suppress(NotRun):
        yield _edge_density(groups)


def seconds(r: Schemes, schemes: Sequence[str], among: Sequence[str] = ()) -> pl.DataFrame:
    """Return a row per workload: seconds under each scheme; empty where it was not run."""
    rows: list[dict[str, Any]] = [
        {"application": w.application, "GB": float(w.gb)}
        | r.row(w, schemes, lambda w, s: r.run(w, s).time / 1e9)
        for w in r.workloads(among=among)
    ]
    if not rows:
        raise NotRun(f"{', '.join(among) or 'nothing'} was not run")
    schema: dict[str, Any] = {"application": pl.String, "GB": pl.Float64}
    return pl.DataFrame(rows, schema=schema | dict.fromkeys(schemes, pl.Float64))


def _figure_1(r: Schemes) -> Exhibit:
    table = seconds(r, FIGURE_1, MINIVITE)
    title = "miniVite's shape under four ways of managing memory, seconds"
    draw = partial(_lines, table, FIGURE_1)
    return make_exhibit("hybrid", "Figure 1", title, table, draw, _host_notes(r))


def _host_notes(r: Schemes) -> Iterator[str]:
    for base in (BASELINE, BASE):
        with suppress(NotRun):
            ratio = 1 / mean_gain(r.gains("host", base, True, MINIVITE))
            yield f"What fits: host takes {ratio:.2f} times as long as {base}, on average."


def _figure_2(r: Schemes) -> Exhibit:
    """Return the parts of time, and the traffic each way."""
    rows: list[dict[str, Any]] = []
    for w in r.workloads(among=MINIVITE):
        for scheme in (BASELINE, BASE, "um-pf"):
            if run := r.runs.get((w, scheme)):
                page = run.facts["page_bytes"] / 1e9
                row = {"GB": float(w.gb), "scheme": scheme}
                row |= {name: run.parts[part] / 1e9 for part, name in _TIMES.items()}
                rows.append(row | {name: run.counts[c] * page for c, name in _MOVED.items()})
    if not rows:
        raise NotRun("miniVite's shape was not run")
    table = pl.DataFrame(rows)
    title = "miniVite's shape: parts of time in seconds (of faults also unmapping), and traffic"
    return make_exhibit("hybrid", "Figure 2", title, table, partial(_stacks, table))


def _figure_4(r: Schemes) -> Exhibit:
    table = seconds(r, FIGURE_4)
    title = f"time in seconds; what is larger than {NEAR} GB does not fit"
    return make_exhibit("hybrid", "Figure 4", title, table, partial(_lines, table, FIGURE_4))


def _figure_5a(r: Schemes) -> Exhibit:
    shares = by_application(r.gains(BASELINE, "rdm", True, what=traffic))
    table = pl.DataFrame({"application": list(shares), "over baseline": list(shares.values())})
    title = "bytes over the link under RDM, over the baseline's; what fits"
    return make_exhibit("hybrid", "Figure 5a", title, table, partial(_bars, table, title))


def _figure_5b(r: Schemes) -> Exhibit:
    """Return the traffic each way of what does not fit."""
    rows: list[dict[str, Any]] = []
    for w in r.workloads(False):
        for scheme in FIGURE_5B:
            if run := r.runs.get((w, scheme)):
                page = run.facts["page_bytes"] / 1e9
                row = {"application": w.application, "GB": float(w.gb), "scheme": scheme}
                row |= {name: run.counts[c] * page for c, name in _MOVED.items()}
                rows.append(row | {"remote GB": run.counts["remote_bytes"] / 1e9})
    if not rows:
        raise NotRun("nothing larger than near memory was run")
    title = "GB over the link by direction and by remote access; what does not fit"
    table = pl.DataFrame(rows)
    return make_exhibit("hybrid", "Figure 5b", title, table, partial(_traffic, table, title))


def _figure_7(r: Schemes) -> Exhibit:
    sizes = [w for w in r.workloads(False, ["bfs"]) if w.gb > max(LARGER)]
    if len(sizes) < 2:
        raise NotRun("bfs was not run at several large sizes")
    table = seconds(r, FIGURE_4[1:], ["bfs"])
    table = table.filter(pl.col("GB") > max(LARGER))
    title = "bfs of large graphs, seconds"
    draw = partial(_lines, table, FIGURE_4[1:])
    return make_exhibit("hybrid", "Figure 7", title, table, draw)


def _figure_6(r: Schemes) -> Exhibit:
    kinds = {"all": None, "fits": True, "does not fit": False}
    run = {name: fits for name, fits in kinds.items() if r.workloads(fits)}
    if not run:
        raise NotRun("nothing was run")
    rows = [
        {"part": part, **{name: mean_gain(r.gains(part, fits=fits)) for name, fits in run.items()}}
        for part in PARTS
    ]
    table = pl.DataFrame(rows)
    title = f"RDM taken apart: geometric mean speed-up over {BASE}"
    return make_exhibit("hybrid", "Figure 6", title, table, partial(_bars, table, title))


def _edge_density(groups: Groups) -> Exhibit:
    ratios = implicit_over_explicit(groups)
    accessed, ratio = [f"{share:.0%}" for share in ratios], list(ratios.values())
    table = pl.DataFrame({"edges accessed": accessed, "implicit over explicit": ratio})
    title = (
        f"bfs of {EDGE_SIZE:g} GB: time with edges left to faults, over time with edges prefetched"
    )
    draw = partial(_bars, table, title)
    return make_exhibit("hybrid", "Edge density", title, table, draw, [_EDGE_NOTE])


# Pictures

_MARKERS = "osd^v<>P"  # they tell lines apart that lie on one another


def _lines(table: pl.DataFrame, schemes: Sequence[str]) -> Figure:
    """Draw time against size, a panel per application, with a line where near memory ends."""
    names = list(dict.fromkeys(table["application"]))
    figure, panels = new_panels(names, 4, 3.4, 2.9)
    style: dict[str, Any] = {"markersize": 5, "markerfacecolor": "none", "linewidth": 1.2}
    for axes, name in zip(panels, names, strict=True):
        own = table.filter(pl.col("application") == name)
        for scheme, marker, colour in zip(schemes, _MARKERS, COLOURS, strict=False):
            axes.plot(own["GB"], own[scheme], marker, ls="-", color=colour, label=scheme, **style)
        axes.axvline(NEAR, **LINE)
        axes.set(yscale="linear" if name == "nn" else "log", xlabel="GB", ylabel="s")
        axes.set_title(name, fontsize=9)
    legend_of(figure, panels[0], 4 if len(names) > 1 else 2)  # as wide as the panels, or less
    return figure


def _bars(table: pl.DataFrame, title: str) -> Figure:
    figure, axes = new_axes(8, 3.4, title)
    labels, *series = table.columns
    for i, column in enumerate(series):
        at, width = side_by_side(len(table), len(series), i, 0.8)
        axes.bar(at, table[column], width, label=column, color=COLOURS[i])
    axes.axhline(1, **LINE)
    axes.set_xticks(range(len(table)), table[labels].to_list())
    legend_of(figure, axes, 4)
    return figure


def _traffic(table: pl.DataFrame, title: str) -> Figure:
    """Draw the traffic of all applications together, a bar per size and scheme."""
    columns = (*_MOVED.values(), "remote GB")
    own = table.group_by("GB", "scheme", maintain_order=True).agg(pl.col(c).sum() for c in columns)
    own = own.sort("GB", maintain_order=True)
    figure, axes = new_axes(11, 4.2, title, ylabel="GB, all applications")
    stack_bars(axes, {c.rpartition(" ")[0]: own[c].to_list() for c in columns}, fontsize=7)
    names = [f"{size:g} {scheme}" for size, scheme in own.select("GB", "scheme").rows()]
    axes.set_xticks(range(len(own)), names, rotation=90, fontsize=7)
    return figure


def _stacks(table: pl.DataFrame) -> Figure:
    """Draw as in the paper: parts of time where everything fits, traffic where it does not."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    fits = pl.col("GB") < NEAR
    for axes, columns, label, own, title in (
        (left, _TIMES.values(), "s", table.filter(fits), "fits"),
        (right, _MOVED.values(), "GB", table.filter(~fits), "does not fit"),
    ):
        stack_bars(axes, {c.rpartition(" ")[0]: own[c].to_list() for c in columns}, fontsize=7)
        names = [f"{size:g} {scheme}" for size, scheme in own.select("GB", "scheme").rows()]
        axes.set_xticks(range(len(own)), names, rotation=90, fontsize=7)
        axes.set_ylabel(label)
        axes.set_title(title, fontsize=10)
    return figure
