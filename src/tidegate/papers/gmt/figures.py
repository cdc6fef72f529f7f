"""Figures 4 and 7 to 14, and the stated factor beside Table 2's sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from statistics import geometric_mean
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from tidegate.display.figures import COLOURS
from tidegate.experiments.runs import Run
from tidegate.papers.gmt.findings import OPTIMISTIC, with_optimistic
from tidegate.papers.gmt.grid import SWEPT, sweep_setups
from tidegate.papers.gmt.setup import BASE, PLACEMENTS, Setup
from tidegate.papers.gmt.transfers import transfer_figures
from tidegate.papers.pictures import (
    grouped_bars,
    new_axes,
    new_panels,
    side_by_side,
    sweep_lines,
    sweep_table,
)
from tidegate.papers.report import Exhibit, make_exhibit
from tidegate.papers.results import Groups, Results

FIGURE_4 = ("MultiVectorAdd", "PageRank")
_HIGHEST = 4.0  # speed-ups above are cut off and labelled
# Option → figure and title
SENSITIVITY = {
    "factor": ("Figure 11", "the over-subscription factor"),
    "ratio": ("Figure 12", "the ratio of Tier-2 to Tier-1"),
    "near": ("Figure 13", "the size of Tier-1"),
}
_NOTES = {
    "Figure 4": (
        "A line through all pairs and (1, 0), a page touched twice running, which visits leave "
        "out. A loop has one distance only, and its line is through two points. Ours counts "
        "visits, the paper coalesced accesses, some 512 to a page: the slope there is smaller by "
        "as much. PageRank's nodes nearly all stay active, so nothing alternates here."
    ),
    "Figure 9": (
        "Predictions are judged when the page comes back, by equation 1 and the line, as the "
        "paper's chain is (2.1.3); a page that leaves without a history is not predicted, and one "
        "that never comes back is not judged."
    ),
    "Figure 10a": (
        "Every miss of a three-tier placement looks Tier-2 up; without a hit it was needless."
    ),
    "Figure 14": (
        "hmm: a page cache with copies of near pages, which reads 128 KiB at a time. A batch of "
        "faults costs the driver 20 µs, a 2 MB block in it 10, a page 1.5 and the SSD's 130, one "
        "after another (docs/gmt.md). hmm-optimistic: HMM's time less what it reads more than "
        "GMT-Reuse."
    ),
}
_FIGURE_4 = {
    "slope": "slope",
    "correlation": "correlation",
    "distinct": "different distances",
    "same_class": "same tier as at its last return",
}

Column = Callable[[str], float | None]  # its value for an application


def figures_of(sizes: Mapping[str, Results]) -> Iterator[Exhibit]:
    """Yield every figure at the first of the sizes, and Figures 8a and 8b at the others."""
    main = next(iter(sizes))
    r = sizes[main]
    yield _figure_7(r)
    yield _figure_4(r)
    yield from transfer_figures()
    systems = (*PLACEMENTS, "tier-belady")
    for size, own in sizes.items():
        beside = "" if size == main else f" {size}"
        title = f"speed-up over BaM, {size}"
        yield _bars(f"Figure 8a{beside}", title, speedups(own, systems), "speed-up over BaM")
        yield _bars(f"Figure 8b{beside}", f"SSD traffic over BaM's, {size}", traffic(own, systems))
    yield _bars("Figure 9", f"prediction accuracy of GMT-Reuse, {main}", accuracies(r), shown=1)
    yield _bars("Figure 10a", f"needless Tier-2 look-ups per Tier-1 miss, {main}", lookups(r))
    title = f"Tier-1 to Tier-2 (to) and back (from), over BaM's SSD transfers, {main}"
    table = exchanged(r)
    yield make_exhibit("gmt", "Figure 10b", title, table, partial(_draw_10b, table, title))
    table = speedups(with_optimistic(r), ("hmm", OPTIMISTIC, "tier-reuse"))
    yield _bars("Figure 14", f"HMM and GMT-Reuse over BaM, {main}", table, "speed-up over BaM")


# Tables by application


def speedups(r: Results, systems: Iterable[str]) -> pl.DataFrame:
    return _by_system(r, systems, lambda a, s: r.ratio(a, BASE, s))


def traffic(r: Results, systems: Iterable[str]) -> pl.DataFrame:
    """Return pages read from and written to the SSD, over BaM's."""
    return _by_system(r, systems, lambda a, s: r.ratio(a, s, BASE, "far_moved"))


def lookups(r: Results) -> pl.DataFrame:
    """Return look-ups in Tier-2 that found nothing, per miss of Tier-1."""

    def wasted(application: str, system: str) -> float:
        counts = r.run(application, system).counts
        return counts["wasted_lookups"] / max(1, counts["faults"])

    return _by_system(r, PLACEMENTS, wasted)


def accuracies(r: Results) -> pl.DataFrame:
    """Return the share of predictions that named the right tier, of those whose page came back."""
    if "tier-reuse" not in r.systems:
        return _table(r, {})

    def report(application: str, what: str) -> float:
        return float(r.run(application, "tier-reuse").facts["policy_report"][what])

    def accuracy(application: str) -> float | None:
        judged = report(application, "predictions")
        return report(application, "right") / judged if judged else None

    def foreseen(application: str) -> float | None:
        left = r.run(application, "tier-reuse").counts["evictions"]
        return 1 - report(application, "unpredicted") / left if left else None

    judged = partial(report, what="predictions")
    columns: dict[str, Column] = {"accuracy": accuracy, "judged": judged}
    return _table(r, columns | {"evictions with a history": foreseen})


def exchanged(r: Results) -> pl.DataFrame:
    """Return pages that went to Tier-2 and came back from there, over BaM's SSD transfers."""

    def over(application: str, system: str, what: str) -> float:
        moved = max(1, r.run(application, BASE).counts["far_moved"])
        return r.run(application, system).counts[what] / moved

    columns = {
        f"{s} {way}": partial(over, system=s, what=what)
        for s in PLACEMENTS
        if s in r.systems
        for way, what in (("to", "to_middle"), ("from", "middle_hits"))
    }
    return _table(r, columns)


def _by_system(
    r: Results, systems: Iterable[str], value: Callable[[str, str], float]
) -> pl.DataFrame:
    """Return a column for each of the systems that were run."""
    rows = [(a, *r.row(a, systems, value).values()) for a in r.applications]
    table = pl.DataFrame(rows, schema=["application", *systems], orient="row")
    return table.select("application", *(s for s in systems if s in r.systems))


def _table(r: Results, columns: Mapping[str, Column]) -> pl.DataFrame:
    rows = [(a, *(value(a) for value in columns.values())) for a in r.applications]
    schema: dict[str, Any] = {"application": pl.String} | dict.fromkeys(columns, pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row")


def _bars(
    name: str, title: str, table: pl.DataFrame, label: str = "share", shown: int | None = None
) -> Exhibit:
    """Return bars of the first ``shown`` columns, or of all."""
    columns = table.columns[1:][:shown]
    # the mean is geometric, so 0 cannot be drawn
    drawn = table.with_columns(pl.col(c).clip(lower_bound=1e-6) for c in columns)
    figure = " ".join(name.split()[:2])
    draw = partial(grouped_bars, drawn, columns, f"{figure}: {title}", label, _HIGHEST)
    notes = [_NOTES[figure]] if figure in _NOTES else []
    return make_exhibit("gmt", name, title, table, draw, notes)


def _draw_10b(table: pl.DataFrame, title: str) -> Figure:
    """Draw stacks as in the paper: what went to Tier-2 below, what was found there above."""
    figure, axes = new_axes(11, 3.6, f"Figure 10b: {title}", ylabel="share")
    placements = [c.removesuffix(" to") for c in table.columns if c.endswith(" to")]
    for i, placement in enumerate(placements):
        at, width = side_by_side(len(table), len(placements), i)
        to, back = (table[f"{placement} {way}"].to_numpy() for way in ("to", "from"))
        bar = partial(axes.bar, at, width=width * 0.94, color=COLOURS[i])
        bar(to, label=f"{placement}: to Tier-2")
        bar(back, bottom=to, alpha=0.45, label=f"{placement}: found there")
    axes.set_xticks(range(len(table)), table["application"].to_list(), fontsize=9)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=3, frameon=False, fontsize=8)
    return figure


# Distances


def _figure_4(r: Results) -> Exhibit:
    wanted = [a for a in FIGURE_4 if (a, BASE) in r.runs] or r.applications[:1]
    runs = {a: r.run(a, BASE) for a in wanted}
    rows = [(a, *(run.facts[column] for column in _FIGURE_4)) for a, run in runs.items()]
    schema: dict[str, Any] = {"application": pl.String}
    schema |= dict.fromkeys(_FIGURE_4.values(), pl.Float64)
    table = pl.DataFrame(rows, schema=schema, orient="row")
    title, draw = "virtual time and reuse distance", partial(_draw_4, runs)
    return make_exhibit("gmt", "Figure 4", title, table, draw, [_NOTES["Figure 4"]])


def _draw_4(runs: Mapping[str, Run]) -> Figure:
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    first, *others = figure.subplots(1, 1 + len(runs), squeeze=False)[0]
    for axes, colour, (name, run) in zip(others, COLOURS, runs.items(), strict=False):
        pairs, returns = run.tables["pairs"], run.tables["returns"]
        distance, vtd = [0, *pairs["distance"]], [1, *pairs["vtd"]]
        line = [1, 1 + max(distance) / run.facts["slope"]]
        first.scatter(distance, vtd, s=12, color=colour, label=name)
        first.plot([0, max(distance)], line, color=colour, linewidth=0.8)
        axes.scatter(returns["page"], returns["remaining"], s=2, color=colour)
        axes.set(xlabel="page", ylim=(0, 1.2 * max([1, *returns["remaining"]])))
        axes.set_title(f"{name}: remaining distance", fontsize=10)
    first.set(xlabel="reuse distance", ylabel="virtual time", ylim=(0, None))
    first.set_title("virtual time over reuse distance", fontsize=10)
    first.legend(frameon=False, fontsize=8)
    return figure


def _figure_7(r: Results) -> Exhibit:
    columns = ("application", "reuse", "Tier-1", "Tier-2", "Tier-3", "returns")
    facts = {a: r.run(a, BASE).facts for a in r.applications}
    rows = [(a, f["reuse"], *f["remaining"], f["returns"]) for a, f in facts.items()]
    table = pl.DataFrame(rows, schema=columns, orient="row")
    title = "reuse, and remaining reuse distances at Tier-1 evictions"
    return make_exhibit("gmt", "Figure 7", title, table, partial(_draw_7, r))


def _draw_7(r: Results) -> Figure:
    figure, panels = new_panels(r.applications, 3, 11 / 3, 2)
    for ax, a in zip(panels, r.applications, strict=True):
        run = r.run(a, BASE)
        table, near = run.tables["distances"], run.facts["near_bytes"] / run.facts["page_bytes"]
        at, count = np.array(table["from"]) / near, np.array(table["share"])
        ax.bar(at, count / max(1, count.sum()), at[1] - at[0], align="edge", color=COLOURS[0])
        for edge in (1, 1 + run.facts["remaining_middle"] / near):
            ax.axvline(edge, color="#D55E00", linewidth=0.8)
        if not count.sum():
            ax.text(0.5, 0.5, "nothing comes back", transform=ax.transAxes, ha="center", fontsize=8)
        ax.set(ylim=(0, 1.05), xlim=(0, None))
        ax.set_title(f"{a}: {run.facts['reuse']:.1%} reused", fontsize=8)
    label = (
        "remaining reuse distance over Tier-1 (the last bar: that and more); lines: Tier-1, "
        "Tier-1 + Tier-2"
    )
    figure.supxlabel(label, fontsize=8)
    figure.supylabel("share", fontsize=8)
    return figure


# Sensitivity


def sweep_figures(setup: Setup, groups: Groups) -> Iterator[Exhibit]:
    """Yield Figures 11 to 13, of the options that have several values.

    The paper's values are not in our copy, so nothing is judged here.
    """
    base, *placements = SWEPT
    for name, (figure, title) in SENSITIVITY.items():
        own = {g.split()[1]: groups[g] for g in sweep_setups(setup) if g.split()[0] == name}
        if own:
            speedups = {
                value: {s: r.ratios(base, s) for s in placements if s in r.systems}
                for value, r in own.items()
            }
            table = sweep_table(speedups, lambda ratios: geometric_mean(ratios.values()))
            title, label = f"sensitivity to {title}", "mean speed-up over BaM"
            lines = dict(zip(placements, placements, strict=True))
            draw = partial(sweep_lines, table, lines, f"{figure}: {title}", name, label)
            yield make_exhibit("gmt", figure, title, table, draw)
