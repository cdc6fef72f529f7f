"""Beyond the paper: CPPE's systems on ObservUVM's applications, and ObservUVM's on CPPE's.

Does coordination still help when touch bits are replaced by sampled observation? Each policy
declares what it must see, and a run has a note where the hardware would not show it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import polars as pl

from tidegate.experiments.specification import RunSpec
from tidegate.options import spec_name
from tidegate.papers.cppe.grid import geometry_of, prefetch_of
from tidegate.papers.cppe.setup import MACHINE, Setup
from tidegate.papers.pictures import grouped_bars
from tidegate.papers.report import Exhibit, make_exhibit
from tidegate.papers.results import Groups, Key
from tidegate.workloads.suites import suite

# Suite → systems, its own baseline first. The suite is the group of the grid.
SYSTEMS = {
    "cppe": ("sl+lru", "cppe", "lru", "tm", "tm++"),
    "observuvm": ("uvm", "cppe", "lru", "tm", "tm++"),
}
SCALE = 1 / 8  # of ObservUVM's sizes


def crossed_of(setup: Setup) -> dict[Key, RunSpec]:
    """Return both suites under systems of both papers, 50 % larger than near memory."""
    if not setup.crossing:
        return {}
    # The driver's tree fetches less than a chunk. So that only eviction differs, all but tm++
    # prefetch as the baseline does.
    naive = prefetch_of(setup, "sl+lru") or "sequential-local"
    mhpe = {"cppe": setup.mhpe}
    grid: dict[Key, RunSpec] = {
        (a, s, "cppe"): RunSpec(
            spec,
            MACHINE,
            s,
            eviction=mhpe.get(s),
            prefetch=naive if s in ("sl+lru", "lru", "tm") else None,
            oversubscribe="50%",
            geometry=geometry_of(setup),
        )
        for a, spec in setup.applications.items()
        for s in SYSTEMS["cppe"]
    }
    few = round(100 * SCALE)
    for spec in suite("observuvm", SCALE):
        for s in SYSTEMS["observuvm"]:
            run = RunSpec(spec, "rtx3090-pcie4", s, eviction=mhpe.get(s), oversubscribe="50%")
            run = run if s == "uvm" else run.change(observed=few, watched=few, count_scale=SCALE)
            grid[spec_name(spec), s, "observuvm"] = run
    return grid


def crossing_figures(results: Groups) -> Iterator[Exhibit]:
    """Yield one exhibit per suite: speed-ups over the suite's own baseline."""
    for name, (base, *rest) in SYSTEMS.items():
        if name not in results:
            continue
        own = results[name]
        table = pl.DataFrame(
            [
                {"application": a, **{s: own.ratio(a, base, s) for s in rest}}
                for a in own.applications
            ]
        )
        title = f"touch bits and samples on {name}'s applications"
        draw = partial(grouped_bars, table, rest, f"Beyond: {title}", f"speed-up over {base}", 4.0)
        yield make_exhibit("cppe", f"Beyond {name}", title, table, draw, own.notes)
