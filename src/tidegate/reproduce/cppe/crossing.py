"""Beyond the paper: CPPE's systems on ObservUVM's applications, and ObservUVM's on CPPE's.

Does coordination still help when touch bits are replaced by sampled observation? Each policy
declares what it must see, and a run says in a note where the hardware would not show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import polars as pl

from tidegate.experiments.runs import Run
from tidegate.experiments.specification import RunSpec
from tidegate.options import parse_spec
from tidegate.reproduce.bars import grouped_bars
from tidegate.reproduce.cppe.setup import MACHINE, Setup
from tidegate.reproduce.report import Exhibit
from tidegate.reproduce.results import Results
from tidegate.workloads.suites import suite

SYSTEMS = {
    "cppe": ("sl+lru", "cppe", "lru", "tm", "tm++"),
    "observuvm": ("uvm", "cppe", "lru", "tm", "tm++"),
}
SCALE = 1 / 8  # of ObservUVM's sizes
_WORDS = "Not in either paper: touch bits (cppe) against sampled observation (lru, tm, tm++) on each other's applications."


def crossed_of(setup: Setup) -> dict[tuple[str, str, str], RunSpec]:
    """Both suites under systems of both papers, 50 % more than fits; the suite stands where a level
    would.
    """
    if not setup.crossing:
        return {}
    # the driver's tree takes less than a chunk; so that eviction is what differs, all but tm++
    # prefetch as the baseline does
    ahead = dict.fromkeys(("sl+lru", "lru", "tm"), setup.prefetch("sl+lru") or "sequential-local")
    mhpe = {"cppe": setup.mhpe}
    own = {
        (a, s, "cppe"): RunSpec(
            spec,
            MACHINE,
            s,
            eviction=mhpe.get(s),
            prefetch=ahead.get(s),
            oversubscribe="50%",
            geometry=setup.geometry,
        )
        for a, spec in setup.applications.items()
        for s in SYSTEMS["cppe"]
    }
    few = round(100 * SCALE)
    others = {
        (parse_spec(spec)[0], s, "observuvm"): RunSpec(
            spec,
            "rtx3090-pcie4",
            s,
            eviction=mhpe.get(s),
            oversubscribe="50%",
            observed=few if s != "uvm" else None,
            watched=few if s != "uvm" else None,
        )
        for spec in suite("observuvm", SCALE)
        for s in SYSTEMS["observuvm"]
    }
    return own | others


def crossing_figure(runs: Mapping[tuple[str, str, str], Run]) -> Iterable[Exhibit]:
    """One exhibit per suite: speed-ups over the suite's own baseline."""
    for name, systems in SYSTEMS.items():
        own = Results({(a, s): run for (a, s, at), run in runs.items() if at == name})
        if not own.runs:
            continue
        base, *rest = systems
        rows: list[dict[str, Any]] = [
            {"application": a, **{s: own.ratio(a, base, s) for s in rest}} for a in own.applications
        ]
        table = pl.DataFrame(rows)
        title = f"touch bits and samples on {name}'s applications"
        draw = partial(grouped_bars, table, rest, f"Beyond: {title}", f"speed-up over {base}", 4.0)
        notes = dict.fromkeys(note for run in own.runs.values() for note in run.notes)
        yield Exhibit(f"Beyond {name}", title, _WORDS, table, draw, tuple(notes))
