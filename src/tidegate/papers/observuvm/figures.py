"""Figures 9 to 13, the grid normalised to UVM, and 14, 16 and 17, its sensitivity."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import polars as pl
from matplotlib.figure import Figure

from tidegate.display.figures import COLOURS
from tidegate.experiments.runs import Run
from tidegate.papers.comparisons import Mean, mean_of
from tidegate.papers.observuvm.findings import contestants_left
from tidegate.papers.observuvm.setup import (
    GRID,
    SWEPT,
    TOURNAMENTS,
    Setup,
    spread_group,
    sweep_group,
)
from tidegate.papers.pictures import (
    dominators_text,
    grouped_bars,
    means_of,
    new_axes,
    sweep_lines,
    sweep_table,
)
from tidegate.papers.report import Exhibit, make_exhibit
from tidegate.papers.results import Groups, Results

_TOURNAMENTS = ("uvm", "tm", "tm+", "tm++")
_EVICTIONS = ("uvm", "lru", "lfu", "cp", "tm")
# Figure → title, systems, and the time or count that is shown
FIGURES = {
    "Figure 9": ("execution time with TM, TM+ and TM++", _TOURNAMENTS, "time"),
    "Figure 10": ("execution time with different eviction policies", _EVICTIONS, "time"),
    "Figure 11": ("evictions with different policies", _EVICTIONS, "evictions"),
    "Figure 12": ("page faults with TM, TM+ and TM++", _TOURNAMENTS, "faults"),
    "Figure 13": ("TM++ against UVM, ACBM and EarlyAdaptor", ("uvm", "acbm", "ea", "tm++"), "time"),
}
# Option → figure and title
SENSITIVITY = {
    "oversubscribe": ("Figure 14", "levels of oversubscription"),
    "observed": ("Figure 16", "observable regions"),
    "samples": ("Figure 17", "samples per region"),
}
_NOTES = {
    "Figure 12": (
        "The paper's own means do not multiply: 40 % and then 36 % fewer faults would be 62 % in "
        "all, not 78 %."
    ),
    "Figure 13": "EarlyAdaptor is a stand-in of ours: only its abstract is known to us.",
}


def grid_figures(results: Results) -> Iterator[Exhibit]:
    """Yield Figures 9 to 13, of what was run."""
    for name, (title, systems, what) in FIGURES.items():
        table = results.table(systems, "uvm", what)
        if name == "Figure 10":
            kept = [contestants_left(results, a) for a in table["application"]]
            table = table.with_columns(pl.Series("tm kept", kept, pl.String))
        means = means_of(table, systems)
        label = f"{what}, normalised to uvm"
        draw = partial(grouped_bars, table, systems, f"{name}: {title}", label)
        notes = [_NOTES[name]] if name in _NOTES else []
        if any(m.dominators for m in means.values()):
            notes.append(_means_text(means))
        yield make_exhibit("observuvm", name, title, _with_means(table, means), draw, notes)


def _means_text(means: dict[str, Mean]) -> str:
    whole = ", ".join(f"{s} {m.value:.3f}" for s, m in means.items())
    rest = ", ".join(f"{s} {m.without:.3f}" for s, m in means.items())
    return f"Geometric means: {whole}; {rest} {dominators_text(means)}."


def _with_means(table: pl.DataFrame, means: dict[str, Mean]) -> pl.DataFrame:
    """Return the table with two more rows."""
    rows = [
        {"application": "mean", **{s: m.value for s, m in means.items()}},
        {
            "application": "mean without those that dominate",
            **{s: m.without for s, m in means.items()},
        },
    ]
    return pl.concat([table, pl.DataFrame(rows)], how="diagonal_relaxed")


def sweep_figures(setup: Setup, groups: Groups) -> Iterator[Exhibit]:
    """Yield Figures 14, 16 and 17: a figure for each option that has several values.

    The paper's values are not in our copy, so nothing is judged here.
    """
    for name in setup.swept():
        base, *systems = SWEPT[name]
        figure, title = SENSITIVITY[name]
        by_value = {
            value: groups[GRID if value == setup.main(name) else sweep_group(name, value)]
            for value in getattr(setup, name)
        }
        ratios = {
            str(value): {s: own.ratios(s, base) for s in systems} for value, own in by_value.items()
        }
        table = sweep_table(ratios, lambda ratios: mean_of(ratios).value)
        title, label = f"sensitivity to {title}", "mean time over uvm's"
        lines = dict(zip(systems, systems, strict=True))
        draw = partial(sweep_lines, table, lines, f"{figure}: {title}", name, label)
        yield make_exhibit("observuvm", figure, title, table, draw)


def spread_figure(setup: Setup, groups: Groups) -> Exhibit:
    """Return what tournaments keep, and their time, if SMs drift apart by some per cent.

    A choice that another jitter changes hangs on little.
    """
    every = [groups[GRID], *(groups[spread_group(p)] for p in range(1, setup.spread + 1))]
    rows = []
    for a in every[0].applications:
        for s in (s for s in TOURNAMENTS if s in setup.systems):
            runs = [own.run(a, s) for own in every]
            over = [run.time / every[0].run(a, "uvm").time for run in runs]
            kept = dict.fromkeys(map(_kept, runs))
            rows.append(
                {"application": a, "system": s, "kept": ", ".join(kept), "choices": len(kept)}
                | {"least": min(over), "by default": over[0], "most": max(over)}
            )
    table, title = pl.DataFrame(rows), "tournaments: what they keep, and time over uvm's"
    return make_exhibit("observuvm", "Spread", title, table, partial(_draw_spread, table))


def _kept(run: Run) -> str:
    return "/".join(run.facts.get("policy_report", {}).get("left", ["?"]))


def _draw_spread(table: pl.DataFrame) -> Figure:
    """Draw a line from the least to the most, and a disc for the default."""
    figure, axes = new_axes(10, 3.6, "Spread of tournaments", ylabel="time over uvm's")
    for i, system in enumerate(table["system"].unique(maintain_order=True)):
        own = table.filter(pl.col("system") == system)
        at = [n + 0.2 * i for n in range(len(own))]
        axes.vlines(at, own["least"], own["most"], color=COLOURS[i])
        axes.plot(at, own["by default"], "o", color=COLOURS[i], label=system)
    axes.set_xticks(range(len(own)), own["application"].to_list())
    axes.set_yscale("log")
    axes.legend(frameon=False, fontsize=8)
    return figure
