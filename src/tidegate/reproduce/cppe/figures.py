"""Figures 3, 7, 8 and 9 beside the paper's words, and the sizes of its structures (VI-C)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from statistics import mean
from typing import Any

import polars as pl

from tidegate.reproduce.bars import grouped_bars
from tidegate.reproduce.cppe.setup import BASE, KINDS
from tidegate.reproduce.report import Exhibit
from tidegate.reproduce.results import Results

FIGURE_3 = ("SRD", "HSD", "MRQ", "STN", "B+T", "HYB")
FIGURE_7 = ("MVT", "SPV", "B+T", "BIC", "SAD", "BFS", "NW", "HWL", "HIS")
ENTRY = 12  # bytes of an entry of each structure (VI-C)
_HIGHEST = 4.0  # speed-ups above are cut off and labelled

_WORDS = {
    "Figure 3": "reserved LRU achieves limited speedup for applications with thrashing access patterns (at most 11%). In "
    "some cases, the gain is actually lower than Random (SRD and STN). For B+T and HYB, reserved LRU suffers from "
    "significant performance degradation (up to 53%). (III)",
    "Figure 7": "the two schemes […] perform similarly for MVT, SPV, B+T, BIC, and SAD. […] Scheme-2 performed better for "
    "applications that had specific patterns within a chunk […]. On average, Scheme-2 achieved 3% and 7% performance "
    "improvement for 75% and 50% oversubscription, respectively. (VI-B)",
    "Figure 8": "First, CPPE performed similarly to the baseline for Type I and VI applications, which favor LRU. Second, "
    "CPPE outperformed the baseline significantly for Type IV applications […]. Third, CPPE's access pattern-aware "
    "prefetcher had a performance advantage over the naïve prefetcher, especially for […] SAD, HIS, and NW. […] On "
    "average, CPPE achieved 1.56x and 1.64x speedup. (VI-B)",
    "Figure 9": "Even with a high reservation percentage (e.g., 20%), reserved LRU did worse than Random. […] LRU-10% "
    "suffered from 27% performance loss for Type VI applications under 50% oversubscription. […] CPPE performed better "
    "than or similarly to these policies for all access pattern types. (VI-B)",
    "Structures": "on average, 731 entries and 559 entries are needed under oversubscription rates of 75% and 50%. This "
    "translates to 8.6KB and 6.6KB. […] The average buffer (used to record evicted chunks) length for MHPE is 73 and 51. "
    "[…] the average [pattern] buffer length was 37.2% and 88.7% of the chunk chain length. (VI-C)",
}


def figures_of(levels: Mapping[str, Results]) -> Iterable[Exhibit]:
    """Each figure at each level that was run."""
    for level, results in levels.items():
        at = f", {level} fits"
        if level == "50%" or len(levels) == 1:
            others = ("sl+random", "sl+lru-10%", "sl+lru-20%")
            yield _bars(
                "Figure 3", f"LRU against Random and reserved LRU{at}", results, others, FIGURE_3
            )
        yield _bars(
            f"Figure 7 {level}",
            f"deletion schemes{at}",
            results,
            ("cppe-scheme1", "cppe"),
            FIGURE_7,
        )
        yield _bars(
            f"Figure 8 {level}", f"CPPE over the baseline{at}", results, ("cppe", "sl+mhpe")
        )
        every = ("cppe", "sl+random", "sl+lru-10%", "sl+lru-20%", "sl-stop+lru", "sl+hpe")
        yield _bars(f"Figure 9 {level}", f"CPPE and others over the baseline{at}", results, every)
    yield _structures(levels)


def speedups(results: Results, systems: Iterable[str], among: Iterable[str] = ()) -> pl.DataFrame:
    """A row per application: its type, and each system's speed-up over the baseline."""
    wanted = list(among) or results.applications
    rows: list[dict[str, Any]] = []
    for a in wanted:
        if (a, BASE) in results.runs:
            own = {
                s: results.ratio(a, BASE, s) if (a, s) in results.runs else None for s in systems
            }
            rows.append({"application": a, "type": KINDS.get(a, ""), **own})
    schema = {"application": pl.String, "type": pl.String, **dict.fromkeys(systems, pl.Float64)}
    return pl.DataFrame(rows, schema=schema)


def _bars(
    name: str, title: str, results: Results, systems: tuple[str, ...], among: tuple[str, ...] = ()
) -> Exhibit:
    table = speedups(results, systems, among)
    draw = partial(
        grouped_bars, table, systems, f"{name}: {title}", f"speed-up over {BASE}", _HIGHEST
    )
    return Exhibit(name, title, _WORDS[" ".join(name.split()[:2])], table, draw)


def _structures(levels: Mapping[str, Results]) -> Exhibit:
    """Entries of the chunk chain and of both buffers, by application, under CPPE."""
    rows: list[dict[str, Any]] = []
    for level, results in levels.items():
        for a in results.applications:
            if (a, "cppe") in results.runs:
                report = results.run(a, "cppe").facts["policy_report"]
                entries = {
                    k: int(report.get(f"{k} entries", 0)) for k in ("chain", "evicted", "pattern")
                }
                rows.append(
                    {"application": a, "fits": level, "strategy": report.get("strategy"), **entries}
                )
    schema = {"application": pl.String, "fits": pl.String, "strategy": pl.String} | dict.fromkeys(
        ("chain", "evicted", "pattern"), pl.Int64
    )
    table = pl.DataFrame(rows, schema=schema)
    notes = []
    for level in levels:
        own = table.filter(table["fits"] == level)
        if len(own):
            total = mean(sum(r) for r in own.select("chain", "evicted", "pattern").rows())
            notes.append(
                f"{level} fits: {total:.0f} entries on average, {total * ENTRY / 1024:.1f} KiB; the buffer of evicted "
                f"chunks {mean(own['evicted']):.0f}." + _pattern_share(own)
            )
    short = table.rename(
        {"chain": "chunk chain", "evicted": "evicted chunks", "pattern": "pattern buffer"}
    )
    return Exhibit(
        "Structures",
        "entries of CPPE's structures",
        _WORDS["Structures"],
        short,
        partial(_draw_structures, table),
        tuple(notes),
    )


def _pattern_share(own: pl.DataFrame) -> str:
    """The pattern buffer over the chunk chain, of the applications that used it, as the paper has
    it.
    """
    used = own.filter(own["pattern"] > 0)
    if used.is_empty():
        return " No application used the pattern buffer."
    share = mean((used["pattern"] / used["chain"]).to_list())
    return f" The pattern buffer is {share:.1%} of the chain in the {len(used)} applications that used it."


def _draw_structures(table: pl.DataFrame) -> Any:
    wide = table.with_columns((pl.col("application") + " " + pl.col("fits")).alias("application"))
    from matplotlib.figure import Figure

    from tidegate.figures import COLOURS

    figure = Figure(figsize=(11, 3.6), layout="constrained")
    axes = figure.subplots()
    bottom = [0.0] * len(wide)
    for i, column in enumerate(("chain", "evicted", "pattern")):
        axes.bar(range(len(wide)), wide[column], 0.8, bottom=bottom, label=column, color=COLOURS[i])
        bottom = [b + v for b, v in zip(bottom, wide[column], strict=True)]
    axes.set_xticks(range(len(wide)), wide["application"].to_list(), rotation=90, fontsize=6)
    axes.set(ylabel="entries", title="Entries of the chunk chain and of both buffers (VI-C)")
    axes.title.set_fontsize(10)
    axes.legend(frameon=False, fontsize=8)
    return figure
