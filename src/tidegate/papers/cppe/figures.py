"""Figures 3, 4, 7, 8 and 9, the sizes of CPPE's structures (VI-C), and its sensitivity (VI-A)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from statistics import geometric_mean, mean
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from tidegate.papers.cppe.grid import KINDS, SWEPT, sweep_group
from tidegate.papers.cppe.setup import BASE, OTHERS, Setup
from tidegate.papers.pictures import grouped_bars, new_axes, stack_bars, sweep_lines
from tidegate.papers.report import Exhibit, make_exhibit
from tidegate.papers.results import Groups, Results

FIGURE_3 = ("SRD", "HSD", "MRQ", "STN", "B+T", "HYB")
FIGURE_7 = ("MVT", "SPV", "B+T", "BIC", "SAD", "BFS", "NW", "HWL", "HIS")
ENTRY = 12  # bytes of an entry of each structure (VI-C)
_HIGHEST = 4.0  # speed-ups above are cut off and labelled
# Structure → its column in the table
_STRUCTURES = {"chain": "chunk chain", "evicted": "evicted chunks", "pattern": "pattern buffer"}


def figures_of(levels: Mapping[str, Results]) -> Iterator[Exhibit]:
    """Yield each figure at each level that was run."""
    for level, r in levels.items():
        at = f", {level} fits"
        if level == "50%" or len(levels) == 1:
            title = f"LRU against Random and reserved LRU{at}"
            yield _bars("Figure 3", title, r, OTHERS[:3], FIGURE_3)
        yield _stopped(f"Figure 4 {level}", f"prefetching once memory is full{at}", r)
        schemes = ("cppe-scheme1", "cppe")
        yield _bars(f"Figure 7 {level}", f"deletion schemes{at}", r, schemes, FIGURE_7)
        yield _bars(f"Figure 8 {level}", f"CPPE over the baseline{at}", r, ("cppe", "sl+mhpe"))
        title = f"CPPE and others over the baseline{at}"
        yield _bars(f"Figure 9 {level}", title, r, ("cppe", *OTHERS))
    yield _untouched(levels)
    yield _structures(levels)


def _stopped(name: str, title: str, r: Results) -> Exhibit:
    """Return the pages evicted with prefetch over those without it, once memory is full."""
    rows = [
        (a, KINDS.get(a, ""), r.ratio(a, BASE, "sl-stop+lru", "pages_evicted"))
        for a in r.applications
        if (a, BASE) in r.runs and (a, "sl-stop+lru") in r.runs
    ]
    schema = {"application": pl.String, "type": pl.String, "pages evicted": pl.Float64}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    label = "pages evicted over those without prefetch when full"
    draw = partial(grouped_bars, table, ("pages evicted",), f"{name}: {title}", label, _HIGHEST)
    return make_exhibit("cppe", name, title, table, draw)


def _untouched(levels: Mapping[str, Results]) -> Exhibit:
    """Return the untouched pages of evicted chunks in the first four intervals, under CPPE."""
    most, whole = "untouched, most", "untouched, first four"
    rows = [
        (a, KINDS.get(a, ""), level, report.get(most), report.get(whole), report.get("strategy"))
        for level, results in levels.items()
        for (a, system), run in results.runs.items()
        if system == "cppe" and (report := run.facts["policy_report"])
    ]
    schema: dict[str, Any] = dict.fromkeys(("application", "type", "fits"), pl.String)
    schema |= {"most of an interval": pl.Int64, "all four": pl.Int64, "strategy": pl.String}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    title = "untouched pages of evicted chunks in the first four intervals"
    draw = partial(_draw_untouched, table, f"Tables III and IV: {title}")
    return make_exhibit("cppe", "Tables III and IV", title, table, draw)


def _draw_untouched(table: pl.DataFrame, title: str) -> Figure:
    figure, axes = new_axes(11, 3.6, title, ylabel="pages")
    stack_bars(axes, {"all four intervals": table["all four"].to_list()})
    names = (table["application"] + " " + table["fits"]).to_list()
    axes.set_xticks(range(len(table)), names, rotation=90, fontsize=6)
    return figure


def speedups(r: Results, systems: Iterable[str], among: Iterable[str] = ()) -> pl.DataFrame:
    """Return a row per application: its type, and each system's speed-up over the baseline."""
    rows: list[dict[str, Any]] = [
        {"application": a, "type": KINDS.get(a, "")}
        | r.row(a, systems, lambda a, s: r.ratio(a, BASE, s))
        for a in list(among) or r.applications
        if (a, BASE) in r.runs
    ]
    schema = {"application": pl.String, "type": pl.String, **dict.fromkeys(systems, pl.Float64)}
    return pl.DataFrame(rows, schema=schema)


def _bars(
    name: str, title: str, r: Results, systems: tuple[str, ...], among: tuple[str, ...] = ()
) -> Exhibit:
    table, label = speedups(r, systems, among), f"speed-up over {BASE}"
    draw = partial(grouped_bars, table, systems, f"{name}: {title}", label, _HIGHEST)
    return make_exhibit("cppe", name, title, table, draw)


def _structures(levels: Mapping[str, Results]) -> Exhibit:
    """Return the entries of the chunk chain and of both buffers, by application, under CPPE."""
    rows: list[dict[str, Any]] = []
    for level, results in levels.items():
        for (a, system), run in results.runs.items():
            if system == "cppe":
                report = run.facts["policy_report"]
                entries = {k: int(report.get(f"{k} entries", 0)) for k in _STRUCTURES}
                known = {"application": a, "fits": level, "strategy": report.get("strategy")}
                rows.append(known | entries)
    schema: dict[str, Any] = dict.fromkeys(("application", "fits", "strategy"), pl.String)
    table = pl.DataFrame(rows, schema=schema | dict.fromkeys(_STRUCTURES, pl.Int64))
    each = {level: table.filter(table["fits"] == level) for level in levels}
    notes = [_sizes_text(level, own) for level, own in each.items() if len(own)]
    draw = partial(_draw_structures, table)
    shown = table.rename(_STRUCTURES)
    title = "entries of CPPE's structures"
    return make_exhibit("cppe", "Structures", title, shown, draw, notes)


def _sizes_text(level: str, own: pl.DataFrame) -> str:
    total = mean(sum(row) for row in own.select(*_STRUCTURES).rows())
    used = own.filter(own["pattern"] > 0)  # by the applications that used it, as in the paper
    pattern = "No application used the pattern buffer."
    if len(used):
        share = mean((used["pattern"] / used["chain"]).to_list())
        pattern = (
            f"The pattern buffer is {share:.1%} of the chain in the {len(used)} applications that "
            "used it."
        )
    return (
        f"{level} fits: {total:.0f} entries on average, {total * ENTRY / 1024:.1f} KiB; the buffer "
        f"of evicted chunks {mean(own['evicted']):.0f}. {pattern}"
    )


def _draw_structures(table: pl.DataFrame) -> Figure:
    title = "Entries of the chunk chain and of both buffers (VI-C)"
    figure, axes = new_axes(11, 3.6, title, ylabel="entries")
    stack_bars(axes, {column: table[column].to_list() for column in _STRUCTURES})
    names = (table["application"] + " " + table["fits"]).to_list()
    axes.set_xticks(range(len(table)), names, rotation=90, fontsize=6)
    return figure


def sweep_figures(setup: Setup, groups: Groups) -> Iterator[Exhibit]:
    """Yield the sensitivity study (VI-A): a figure for each option that has several values.

    The paper's values are not in our copy, so nothing is judged here.
    """
    for name in setup.swept():
        by_value = {
            value: {
                level: groups[
                    level if value == setup.main(name) else sweep_group(name, value, level)
                ]
                for level in setup.levels
            }
            for value in getattr(setup, name)
        }
        table = _sweep_table(by_value)
        lines = {level: f"{level} fits" for level in setup.levels}
        title, label = f"sensitivity of CPPE to {name}", f"mean speed-up over {BASE}"
        draw = partial(sweep_lines, table, lines, f"Sensitivity of CPPE to {name}", name, label)
        yield make_exhibit("cppe", f"Sensitivity {name}", title, table, draw)


def _sweep_table(by_value: Mapping[Any, Mapping[str, Results]]) -> pl.DataFrame:
    """Return a row per value: CPPE's mean speed-up at each level, and each application's."""
    rows = []
    for value, levels in by_value.items():
        ratios = {level: results.ratios(*SWEPT) for level, results in levels.items()}
        row: dict[str, Any] = {"value": str(value)}
        row |= {level: geometric_mean(own.values()) for level, own in ratios.items()}
        for level, own in ratios.items():
            row |= {f"{a} {level}": ratio for a, ratio in own.items()}
        rows.append(row)
    return pl.DataFrame(rows)
