"""Figure 3 and O15: notifications grow with regions until the counters run out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import polars as pl
from matplotlib.figure import Figure

from tidegate.experiments.runs import Run
from tidegate.figures import COLOURS
from tidegate.reproduce.ledger import Finding
from tidegate.reproduce.observuvm.findings import CLAIMS
from tidegate.reproduce.report import Exhibit

_WORDS = (
    "We observe that the number of notifications increases linearly with p until 256. It saturates thereafter, confirming "
    "the presence of 256 hardware counters. (III-D)"
)


def saturation_figure(runs: Mapping[int, Run]) -> Exhibit:
    """Figure 3."""
    return Exhibit(
        "Figure 3",
        "the limited number of access counters",
        _WORDS,
        saturation_table(runs),
        partial(_draw, runs),
    )


def saturation_table(runs: Mapping[int, Run]) -> pl.DataFrame:
    return pl.DataFrame(
        {"regions": list(runs), "notifications": [r.counts["notifications"] for r in runs.values()]}
    )


def saturation_findings(runs: Mapping[int, Run]) -> list[Finding]:
    """O15: linear, then flat."""
    claim = CLAIMS["O15"]
    if not runs:
        return [claim.unmeasured("the microbenchmark was not run")]
    counted = {p: r.counts["notifications"] for p, r in runs.items()}
    below = {p: n for p, n in counted.items() if p <= 256}
    above = sorted({n for p, n in counted.items() if p > 256})
    off = [f"{n} at {p} regions" for p, n in below.items() if n != p]
    flat = above[0] if len(above) == 1 else f"{above[0]} to {above[-1]}" if above else "nothing"
    return [
        claim.holds(
            not off,
            "one per region up to 256",
            "one per region" if not off else ", ".join(off),
            part="linear",
        ),
        claim.exact(
            flat,
            part="flat",
            why="a counter that notified was free again before all regions had been counted",
        ),
    ]


def _draw(runs: Mapping[int, Run]) -> Figure:
    figure = Figure(figsize=(5.5, 3.2), layout="constrained")
    axes = figure.subplots()
    table = saturation_table(runs)
    axes.plot(table["regions"], table["notifications"], marker="o", color=COLOURS[0])
    axes.axhline(256, color="#444444", linewidth=0.8, linestyle=":")
    axes.set(
        xlabel="regions of 2 MB, pinned far", ylabel="notifications", ylim=(0, None), xlim=(0, None)
    )
    axes.set_title("Figure 3: the limited number of access counters", fontsize=10)
    return figure
