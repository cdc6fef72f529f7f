"""Figure 3 and O15: notifications grow with regions until the counters run out (III-D)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from tidegate.display.figures import COLOURS
from tidegate.options import Option
from tidegate.papers.ledger import Claim, Finding
from tidegate.papers.observuvm.findings import CLAIMS
from tidegate.papers.pictures import LINE, new_axes
from tidegate.papers.report import Exhibit, make_exhibit
from tidegate.papers.results import NotRun, Results, find, part
from tidegate.policies.interface.policy import PlacementPolicy
from tidegate.policies.interface.visibility import Samples
from tidegate.simulation.gpu.observation import ACCESS
from tidegate.trace.build import blocks_of
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.program import Space, Workload

ACCESSES = 16  # per region, and the threshold: the paper's x, whose value does not matter


class Probe(Workload):
    """Access each of ``regions`` regions ``accesses`` times: once in each pass, which is a launch.

    A pass goes round all regions, so that no counter is free again before all regions need one. One
    more touch of the first region keeps the program running until the last notifications are
    handled.
    """

    name = "counter-probe"
    provenance = Provenance.DERIVED
    regions = Option(256, "regions (the paper's p)", least=1)
    accesses = Option(ACCESSES, "accesses of each region", least=1)
    region_bytes = Option(2 << 20, "size of a region", least=1)

    def sizes(self) -> dict[str, int]:
        return {"far": self.regions * self.region_bytes}

    def launches(self, space: Space) -> Iterator[Launch]:
        pages = space["far"].first_page + np.arange(self.regions) * space.geometry.pages_per_region
        for _ in range(self.accesses):
            yield Launch("pass", [blocks_of(1, pages, bytes=ACCESS)])
        yield Launch("end", [blocks_of(1, pages[:1], bytes=ACCESS)])


class PinnedFar(PlacementPolicy):
    """Keep everything far and mapped; counters notify after ``threshold`` accesses."""

    name = "pinned-far"
    sees = Samples()
    threshold = Option(ACCESSES, "accesses before a notification", least=1, most=65535)

    def start(self) -> None:
        self.memory.count_remote(self.threshold)
        for o in self.memory.objects:
            self.memory.advise(o.first_page, o.pages, "far")


COUNTERS = 256
_TITLE = "the limited number of access counters"


def saturation_figure(results: Results) -> Exhibit:
    """Return Figure 3."""
    counted = _counted(results)
    table = pl.DataFrame({"regions": list(counted), "notifications": list(counted.values())})
    return make_exhibit("observuvm", "Figure 3", _TITLE, table, partial(_draw, table))


def saturation_findings(results: Results) -> list[Finding]:
    """Return the findings on O15: linear, then flat."""
    return find(CLAIMS, (part("O15", "linear", _linear), part("O15", "flat", _flat)), results)


def _counted(results: Results) -> dict[int, int]:
    """Return notifications by the number of regions."""
    if not results.runs:
        raise NotRun("the microbenchmark was not run")
    return {regions: run.counts["notifications"] for (regions, _), run in results.runs.items()}


def _linear(claim: Claim, results: Results) -> Finding:
    counted = _counted(results)
    off = [f"{n} at {p} regions" for p, n in counted.items() if p <= COUNTERS and n != p]
    return claim.holds(not off, "one per region up to 256", ", ".join(off) or "one per region")


def _flat(claim: Claim, results: Results) -> Finding:
    above = sorted({n for p, n in _counted(results).items() if p > COUNTERS})
    flat = above[0] if len(above) == 1 else f"{above[0]} to {above[-1]}" if above else "nothing"
    why = "a counter that notified was free again before all regions had been counted"
    return claim.exact(flat, why=why)


def _draw(table: pl.DataFrame) -> Figure:
    labels = {"xlabel": "regions of 2 MB, pinned far", "ylabel": "notifications"}
    figure, axes = new_axes(5.5, 3.2, f"Figure 3: {_TITLE}", **labels)
    axes.plot(table["regions"], table["notifications"], marker="o", color=COLOURS[0])
    axes.axhline(COUNTERS, **LINE, linestyle=":")
    axes.set(ylim=(0, None), xlim=(0, None))
    return figure
