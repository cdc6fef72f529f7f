"""Figures 4, 6, 7, 8a, 8b, 9, 10 and 14 beside the paper's words, and the stated factor beside Table 2's sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from tidegate.experiments.report import Exhibit
from tidegate.experiments.reproduce.bars import grouped_bars
from tidegate.experiments.reproduce.gmt.setup import BASE, MACHINE, PLACEMENTS
from tidegate.experiments.reproduce.results import Results
from tidegate.figures import COLOURS
from tidegate.machine import load_machine
from tidegate.mechanism.tiers.transfers import Transfers, crossing, delivered

FIGURE_4 = ("MultiVectorAdd", "PageRank")
_HIGHEST = 4.0  # speed-ups above are cut off and labelled

_WORDS = {
    "Figure 4": "there is a good correlation (linear in fact), between VTD and reuse distances […]. In "
    "MultiVectorAdd, we see that a "
    "page has the same RRD each time it is evicted from Tier-1 […]. PageRank […] the pattern is not constant - "
    "it alternates. "
    "(2.1.3)",
    "Figure 6a": "Directly employing numerous GPU threads can sustain much higher throughput for a large number "
    "of non-contiguous "
    "transfers, compared to the DMA mechanism […]. zero-copy only when the number of pages to be transferred exceeds 8 "
    "(cross-over point in Figure 6a). (2.3)",
    "Figure 6b": "Across this wide range of skewness, we see that Hybrid-32T […] does (or is close to) the best. (2.3)",
    "Figure 7": "we also plot vertical lines demarcating the GPU memory capacity, and the GPU+CPU memory "
    "capacities, where these "
    "ranges capture what should ideally be placed/fulfilled from a particular tier. (3.2)",
    "Figure 8a": "While all policies show speedup over BaM, GMT-Reuse shows a significantly higher average "
    "speedup (1.5) over the "
    "other two - 1.07 and 1.24 for GMT-TierOrder and GMT-Random respectively. (3.3)",
    "Figure 8b": "These high speedups stem largely from the big reductions in SSD I/O (73% and 81%) due to high "
    "hit rates in host "
    "memory. (3.3)",
    "Figure 9": "there is hardly any history built-up for making predictions (see Figure 9) […] our RRD "
    "predictor is also fairly high "
    "in these applications [Srad, Backprop]. (3.3)",
    "Figure 10a": "GMT-Reuse has the fewest unnecessary lookups because of its higher prediction accuracy. "
    "GMT-TierOrder does quite "
    "bad on this metric. (3.4)",
    "Figure 10b": "we want the top part to roughly equal the bottom part, i.e. the number of placements we make "
    "into Tier-2 match the "
    "number of retrievals. (3.4)",
    "Figure 14": "BaM still outperforms HMM […]. GMT-Reuse […] (50% over BaM and 357% over HMM). (3.6)",
}


def figures_of(sizes: Mapping[str, Results]) -> Iterable[Exhibit]:
    """Every figure at the first of the sizes, and Figures 8a and 8b at the others."""
    main, *others = sizes
    yield from _figure_4(sizes[main])
    yield from transfer_figures()
    yield _figure_7(sizes[main])
    for size in (main, *others):
        r = sizes[size]
        yield _bars("Figure 8a", f"speed-up over BaM, {size}", speedups(r, (*PLACEMENTS, "tier-belady")), size != main)
        yield _bars("Figure 8b", f"SSD traffic over BaM's, {size}", traffic(r, (*PLACEMENTS, "tier-belady")), size != main)
    yield _bars("Figure 9", f"prediction accuracy, {main}", accuracies(sizes[main]))
    yield _bars("Figure 10a", f"needless Tier-2 look-ups per Tier-1 miss, {main}", lookups(sizes[main]))
    yield _bars(
        "Figure 10b", f"Tier-1 to Tier-2 (to) and back (from), over BaM's SSD transfers, {main}", exchanged(sizes[main])
    )
    yield _bars(
        "Figure 14", f"HMM and GMT-Reuse over BaM, {main}", speedups(sizes[main], ("hmm", "hmm-optimistic", "tier-reuse"))
    )


# Tables by application


def speedups(r: Results, systems: Sequence[str]) -> pl.DataFrame:
    return _table(r, {s: lambda a, s=s: r.ratio(a, BASE, s) for s in systems if _ran(r, s)})


def traffic(r: Results, systems: Sequence[str]) -> pl.DataFrame:
    """Pages read from and written to the SSD, over BaM's."""
    return _table(r, {s: lambda a, s=s: r.ratio(a, s, BASE, "far_moved") for s in systems if _ran(r, s)})


def accuracy(r: Results, application: str) -> float | None:
    """Of the predictions whose page came back, the share that named the right tier."""
    report = r.run(application, "tier-reuse").facts["policy_report"]
    return report["right"] / report["predictions"] if report["predictions"] else None


def accuracies(r: Results) -> pl.DataFrame:
    return _table(r, {"tier-reuse": partial(accuracy, r)} if _ran(r, "tier-reuse") else {})


def lookups(r: Results) -> pl.DataFrame:
    def wasted(application: str, system: str) -> float:
        c = r.run(application, system).counts
        return c["wasted_lookups"] / max(1, c["faults"])

    return _table(r, {s: lambda a, s=s: wasted(a, s) for s in PLACEMENTS if _ran(r, s)})


def exchanged(r: Results) -> pl.DataFrame:
    def over(application: str, system: str, what: str) -> float:
        return r.run(application, system).counts[what] / max(1, r.run(application, BASE).counts["far_moved"])

    ways = {"to": "to_middle", "from": "middle_hits"}
    return _table(
        r, {f"{s} {way}": lambda a, s=s, what=what: over(a, s, what)
            for s in PLACEMENTS if _ran(r, s) for way, what in ways.items()},
    )  # fmt: skip


def _ran(r: Results, system: str) -> bool:
    return any(s == system for _, s in r.runs)


def _table(r: Results, columns: Mapping[str, Any]) -> pl.DataFrame:
    rows = [{"application": a, **{name: value(a) for name, value in columns.items()}} for a in r.applications]
    return pl.DataFrame(rows, schema={"application": pl.String, **dict.fromkeys(columns, pl.Float64)})


def _bars(name: str, title: str, table: pl.DataFrame, beside: bool = False) -> Exhibit:
    columns = [c for c in table.columns if c != "application"]
    shown = table.with_columns(pl.col(c).clip(lower_bound=1e-6) for c in columns)  # the mean is geometric
    label = "speed-up over BaM" if "speed-up" in title or name == "Figure 14" else "share"
    draw = partial(grouped_bars, shown, columns, f"{name}: {title}", label, _HIGHEST)
    label = f"{name} {title.rsplit(', ', 1)[1]}" if beside else name
    return Exhibit(label, title, _WORDS[name], table, draw)


# The others


def _figure_4(r: Results) -> Iterable[Exhibit]:
    wanted = [a for a in FIGURE_4 if (a, BASE) in r.runs] or r.applications[:1]
    runs = {a: r.run(a, BASE) for a in wanted}
    rows = [
        {
            "application": a,
            "slope": f["slope"],
            "correlation": f["correlation"],
            "same tier as at its last return": f["same_class"],
        }
        for a, f in ((a, run.facts) for a, run in runs.items())
    ]
    schema = {"application": pl.String} | dict.fromkeys(list(rows[0])[1:], pl.Float64)
    notes = ("Where all reuse distances are the same, as in a loop, there is no slope to be had from them.",)
    table = pl.DataFrame(rows, schema=schema)
    yield Exhibit("Figure 4", "virtual time and reuse distance", _WORDS["Figure 4"], table, partial(_draw_4, runs), notes)


def _draw_4(runs: Mapping[str, Any]) -> Figure:
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    axes = figure.subplots(1, 1 + len(runs), squeeze=False)[0]
    for i, (name, run) in enumerate(runs.items()):
        pairs, returns = run.tables["pairs"], run.tables["returns"]
        axes[0].scatter(pairs["distance"], pairs["vtd"], s=2, color=COLOURS[i], label=name)
        axes[1 + i].scatter(returns["page"], returns["remaining"], s=2, color=COLOURS[i])
        axes[1 + i].set(title=f"{name}: remaining distance", xlabel="page")
    axes[0].set(title="virtual time over reuse distance", xlabel="reuse distance", ylabel="virtual time")
    axes[0].legend(frameon=False, fontsize=8)
    return figure


def transfer_figures() -> Iterable[Exhibit]:
    """Figure 6, from the model alone."""
    t = Transfers.of(load_machine(MACHINE))
    counts = (1, 2, 4, 6, 8, 12, 16, 32, 64, 128)
    rows = [
        {"pages": n, "dma": t.bandwidth(n, t.dma(n))}
        | {f"zero-copy {x}t": t.bandwidth(n, t.zero_copy(n, x)) for x in (8, 16, 32)}
        | {"hybrid-32t": t.bandwidth(n, t.hybrid(n, 32))}
        for n in counts
    ]
    note = f"GB/s. Zero-copy by a warp is quicker from {crossing(t)} pages on; nothing was fitted to that."
    table = pl.DataFrame(rows)
    yield Exhibit("Figure 6a", "transfers of pages that lie apart", _WORDS["Figure 6a"], table,
                  partial(_lines, table, "pages"), (note,))  # fmt: skip
    skewed = pl.DataFrame([{"skew": skew, **delivered(t, skew)} for skew in (1.0, 0.8, 0.6, 0.4, 0.2, 0.0)])
    yield Exhibit("Figure 6b", "delivered bandwidth for zipf accesses", _WORDS["Figure 6b"], skewed,
                  partial(_lines, skewed, "skew"), ("GB/s.",))  # fmt: skip


def _lines(table: pl.DataFrame, x: str) -> Figure:
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    for i, column in enumerate(c for c in table.columns if c != x):
        axes.plot(table[x], table[column], marker="o", label=column, color=COLOURS[i])
    axes.set(xlabel=x, ylabel="GB/s", ylim=(0, None))
    if x == "pages":
        axes.set_xscale("log", base=2)
    else:
        axes.invert_xaxis()
    axes.legend(frameon=False, fontsize=8)
    return figure


def _figure_7(r: Results) -> Exhibit:
    rows = []
    for a in r.applications:
        f = r.run(a, BASE).facts
        tier_1, tier_2, tier_3 = f["remaining"]
        rows.append({"application": a, "reuse": f["reuse"], "Tier-1": tier_1, "Tier-2": tier_2, "Tier-3": tier_3,
                     "returns": f["returns"]})  # fmt: skip
    table = pl.DataFrame(rows)
    return Exhibit("Figure 7", "reuse, and remaining reuse distances at Tier-1 evictions", _WORDS["Figure 7"], table,
                   partial(_draw_7, r))  # fmt: skip


def _draw_7(r: Results) -> Figure:
    figure = Figure(figsize=(11, 6), layout="constrained")
    axes = figure.subplots(-(-len(r.applications) // 3), 3, squeeze=False).ravel()
    for ax, a in zip(axes, r.applications, strict=False):
        run = r.run(a, BASE)
        table, near = run.tables["distances"], run.facts["near_bytes"] / run.facts["page_bytes"]
        ax.fill_between(np.array(table["from"]) / near, table["share"], step="post", color=COLOURS[0])
        for edge in (1, 5):
            ax.axvline(edge, color="#D55E00", linewidth=0.8)
        ax.set_title(f"{a}: {run.facts['reuse']:.1%} reused", fontsize=8)
    figure.supxlabel("remaining reuse distance over Tier-1", fontsize=8)
    return figure
