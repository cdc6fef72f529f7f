"""The figures: time over uvm's by application, and pages moved over Belady's."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import geometric_mean

import polars as pl
from matplotlib.figure import Figure

from tidegate.display.figures import COLOURS
from tidegate.papers.pictures import LINE, new_axes
from tidegate.papers.report import Exhibit, make_exhibit
from tidegate.papers.results import Groups, Results
from tidegate.papers.tide.findings import among, means, moved
from tidegate.papers.tide.grid import CONSTANTS, MOVED, tried
from tidegate.papers.tide.setup import BASE, DEVELOPED, HELD_BACK, OURS, SUITES, Setup


def all_figures(setup: Setup, results: Groups) -> Iterator[Exhibit]:
    """Yield a figure of times for each level, and the gap to Belady."""
    for level in setup.levels:
        title = f"time over uvm's, {level} more than fits: tide beside the best published system"
        table = time_table(results[level])
        yield make_exhibit(OURS, f"Time {level}", title, table, partial(draw_ratios, table, BASE))
    gaps = {p: moved(results[MOVED], p) for p in (OURS, "leu-observed")}
    rows = [
        {"suite": at.suite, "half": at.half, "application": at.name}
        | {policy: gaps[policy][at] for policy in gaps}
        for at in gaps[OURS]
    ]
    table, title = pl.DataFrame(rows), "pages brought in over Belady's, by eviction alone"
    yield make_exhibit(OURS, "Gap", title, table, partial(draw_ratios, table, "belady"))
    if tried(setup):
        table = constants_table(setup, results[CONSTANTS])
        title = f"tide with a constant halved or doubled: time over uvm's, {setup.levels[0]}"
        yield make_exhibit(OURS, "Constants", title, table, partial(draw_constants, table))


def constants_table(setup: Setup, results: Results) -> pl.DataFrame:
    """Return the geometric mean and the worst of time over uvm's, by changed constant."""
    systems = [OURS, *(f"{part} {name}={value:g}" for part, name, value in setup.changed())]
    rows = []
    for system in systems:
        ratios = results.ratios(system, BASE)
        mean, worst = geometric_mean(ratios.values()), max(ratios, key=lambda at: ratios[at])
        rows.append({"tide with": system, "mean": mean, "worst": ratios[worst], "at": worst.name})
    return pl.DataFrame(rows)


def draw_constants(table: pl.DataFrame) -> Figure:
    """Draw a bar for each changed constant; a line marks the defaults."""
    figure, axes = new_axes(8, 5, xlabel="time over uvm's, geometric mean")
    names, means = table["tide with"].to_list(), table["mean"].to_list()
    axes.barh(names[1:], means[1:], color=COLOURS[1])
    axes.axvline(means[0], color=COLOURS[0], label="defaults")
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=8)
    axes.legend(frameon=False, fontsize=8)
    return figure


def time_table(results: Results) -> pl.DataFrame:
    """Return each application's time over uvm's, under tide and the half's best published one."""
    rows = []
    for suite in SUITES:
        for half in (DEVELOPED, HELD_BACK):
            if not (own := means(results, suite, half)):
                continue
            best = next(name for name in own if name != OURS)
            for at in among(results, suite, half):
                ratios = {OURS: OURS, "published": best}
                rows.append(
                    {"suite": suite, "half": half, "application": at.name, "best": best}
                    | {column: results.ratio(at, s, BASE) for column, s in ratios.items()}
                )
    return pl.DataFrame(rows)


def draw_ratios(table: pl.DataFrame, base: str) -> Figure:
    """Draw a column per application, those developed on first; ours as discs."""
    table = table.sort("suite", "half", maintain_order=True)
    limits = (-0.7, len(table) - 0.3)
    figure, axes = new_axes(12, 4.2, ylabel=f"over {base}'s", xlim=limits)
    other = table.columns[-1]
    axes.plot(table[other], "s", color=COLOURS[1], markersize=5, label=other)
    axes.plot(table[OURS], "o", color=COLOURS[0], markersize=6, label=OURS, zorder=5)
    halves = [f"{row['suite']}, {row['half']}" for row in table.to_dicts()]
    for i, name in enumerate(halves):
        if i == 0 or name != halves[i - 1]:
            axes.axvline(i - 0.5, color="#bbbbbb", linewidth=0.8, linestyle=":")
            axes.text(i - 0.4, 1.01, name, fontsize=7, transform=axes.get_xaxis_transform())
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if value in (0.2, 0.5, 2) else "")
    axes.axhline(1, **LINE)
    axes.grid(axis="x", color="#eeeeee", linewidth=0.6)
    axes.set_xticks(range(len(table)), table["application"], rotation=90, fontsize=8)
    axes.legend(frameon=False, fontsize=8, loc="lower left")
    return figure
