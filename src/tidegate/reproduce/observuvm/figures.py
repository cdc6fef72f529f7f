"""Figures 9 to 13: the grid, normalised to UVM, beside the paper's words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from operator import attrgetter

import polars as pl

from tidegate.reproduce.bars import dominators_text, grouped_bars, means_of
from tidegate.reproduce.means import Mean
from tidegate.reproduce.report import Exhibit
from tidegate.reproduce.results import Results


@dataclass(frozen=True)
class _Figure:
    """What a figure shows: these systems' time, or a count, over UVM's."""

    name: str
    title: str
    systems: tuple[str, ...]
    what: str
    words: str  # the paper's, VII-A and VII-B


_FIGURES = (
    _Figure(
        "Figure 9",
        "execution time with TM, TM+ and TM++",
        ("uvm", "tm", "tm+", "tm++"),
        "time",
        "TM++ improves performance over UVM by 34%, and up to 64% (SPM). Tournament […] improving execution time by an "
        "average of 20% over UVM. FDP speeds up further by 9%, and RGP by another 5%. (VII-A)",
    ),
    _Figure(
        "Figure 10",
        "execution time with different eviction policies",
        ("uvm", "lru", "lfu", "cp", "tm"),
        "time",
        "As expected, no single policy performs best for all applications; five prefer LRU, three prefer CP, and the "
        "remaining six prefer LFU. […] the Tournament performs close to the best-performing policy for each application. "
        "(VII-A)",
    ),
    _Figure(
        "Figure 11",
        "evictions with different policies",
        ("uvm", "lru", "lfu", "cp", "tm"),
        "evictions",
        "MM, GMM, and HEL preferred the LRU policy, reducing evictions by 62% […]. 2DC and BLK have cyclic access "
        "patterns and thus benefit from the CP policy, improving the number of evictions by 46% […]. SRK, SR2, GMV, LU, "
        "and SPM incline towards the LFU policy, with […] 46% reduction in evictions. (VII-A)",
    ),
    _Figure(
        "Figure 12",
        "page faults with TM, TM+ and TM++",
        ("uvm", "tm", "tm+", "tm++"),
        "faults",
        "On average, TM reduces the number of faults by 40% […]. TM+ reduces GPU page faults by 36% on average (and up to "
        "84%) […]. Overall, TM+ reduces page faults over UVM by around 78% on average. […] a 9% reduction in page faults "
        "over TM+. (VII-A)",
    ),
    _Figure(
        "Figure 13",
        "TM++ against UVM, ACBM and EarlyAdaptor",
        ("uvm", "acbm", "ea", "tm++"),
        "time",
        "For some applications (MM, GMM), ACBM performs worse than even page fault-based UVM. Overall, TM++ shows around "
        "20% improvement over ACBM. […] TM++ outperforms EA by nearly 20%, on average (and up to 36%). (VII-B)",
    ),
)
_WHOLE, _REST = attrgetter("value"), attrgetter("without")
_NOTES = {
    "Figure 12": (
        "The paper's own means do not multiply: 40 % and then 36 % fewer faults would be 62 % in all, not 78 %.",
    ),
    "Figure 13": ("EarlyAdaptor is a stand-in of ours: its algorithm is not public.",),
}


def grid_figures(results: Results) -> list[Exhibit]:
    """Figures 9 to 13, of what was run."""
    return [_exhibit(results, figure) for figure in _FIGURES]


def _exhibit(results: Results, f: _Figure) -> Exhibit:
    table = results.table(f.systems, "uvm", f.what)
    if f.name == "Figure 10":
        table = table.with_columns(
            pl.Series("tm kept", [_kept(results, a) for a in table["application"]], pl.String)
        )
    means = means_of(table, f.systems)
    draw = partial(
        grouped_bars, table, f.systems, f"{f.name}: {f.title}", f"{f.what}, normalised to uvm"
    )
    notes = (
        *_NOTES.get(f.name, ()),
        *([_means_told(means)] if any(m.dominators for m in means.values()) else []),
    )
    return Exhibit(f.name, f.title, f.words, _with_means(table, means), draw, notes)


def _means_told(means: dict[str, Mean]) -> str:
    whole, rest = (
        ", ".join(f"{s} {value(m):.3f}" for s, m in means.items()) for value in (_WHOLE, _REST)
    )
    return f"Geometric means: {whole}; {rest} {dominators_text(means)}."


def _with_means(table: pl.DataFrame, means: dict[str, Mean]) -> pl.DataFrame:
    """The table with two rows more."""
    rows = [
        {"application": label, **{s: value(m) for s, m in means.items()}}
        for label, value in (("mean", _WHOLE), ("mean without those that dominate", _REST))
    ]
    return pl.concat([table, pl.DataFrame(rows)], how="diagonal_relaxed")


def _kept(results: Results, application: str) -> str:
    """The policies that the tournament had not retired at the end."""
    run = results.runs.get((application, "tm"))
    return "" if run is None else "/".join(run.facts.get("policy_report", {}).get("left", []))
