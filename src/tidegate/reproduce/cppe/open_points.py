"""What CPPE leaves open, and the runs of its readings (--robustness)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tidegate.experiments.specification import RunSpec
from tidegate.reproduce.cppe.findings import findings_of
from tidegate.reproduce.cppe.setup import OWN, Setup
from tidegate.reproduce.kept import Kept
from tidegate.reproduce.ledger import Finding
from tidegate.reproduce.readings import (
    Variant,
    choose,
    distinct,
    run_variants,
    variant_of,
    with_shares,
)
from tidegate.reproduce.results import Results

# Option → values, the default first.
OPEN = {
    "mhpe.counts": ("pages", "faults"),  # what an interval counts
    "mhpe.skip": ("new", "nothing"),  # what the MRU search passes over before the forward distance
    "mhpe.patterns": ("lru", "always"),  # when patterns are recorded
    "lru.recency": ("migration", "access"),  # of the baseline
    "machine.faults": (16, 64),  # served together
}
_MACHINE = ("machine",)
DEPENDS = {
    "sl+lru": (*_MACHINE, "lru"),
    "sl-stop+lru": (*_MACHINE, "lru"),
    **dict.fromkeys(OWN, (*_MACHINE, "mhpe")),
}

Grid = dict[tuple[str, str, str], Variant]


def ask_variant(variant: Variant, setup: Setup) -> RunSpec:
    """The ask of one variant; its application is spelt "NW 50%"."""
    o = dict(variant.options)
    application, level = variant.application.split(" ")
    base = setup.ask(setup.applications[application], variant.system, level)
    machine = base.load_machine()
    machine = replace(machine, driver=replace(machine.driver, batch_faults=o["machine.faults"]))
    ask = replace(base, workload=Kept(str(base.workload)), machine=machine)
    if variant.system in OWN:
        given = str(base.eviction).removesuffix(")")
        own = [f"{k.partition('.')[2]}={v}" for k, v in o.items() if k.startswith("mhpe.")]
        return replace(ask, eviction=f"{given}, {', '.join(own)})")
    if o.get("lru.recency") == "access":
        return replace(ask, eviction="lru-ideal")
    return ask


def readings_of(setup: Setup) -> list[Grid]:
    """Every reading as a grid of variants."""
    return [
        {
            (a, s, level): variant_of(f"{a} {level}", s, reading, DEPENDS.get(s, _MACHINE))
            for a in setup.applications
            for level in setup.levels
            for s in setup.systems
        }
        for reading in choose(OPEN, setup.readings)
    ]


def variants_of(setup: Setup) -> list[Variant]:
    """All variants of all readings."""
    return distinct(readings_of(setup))


def robust_findings(
    findings: list[Finding],
    setup: Setup,
    workers: int | None,
    cache: bool,
    progress: Callable[[int], None],
) -> list[Finding]:
    """The findings, each with the share of open readings under which it holds."""
    make = partial(ask_variant, setup=setup)
    runs = run_variants(
        variants_of(setup), make, repr(setup), workers=workers, cache=cache, progress=progress
    )
    tried = [
        findings_of(
            {
                level: Results({(a, s): runs[v] for (a, s, at), v in grid.items() if at == level})
                for level in setup.levels
            }
        )
        for grid in readings_of(setup)
    ]
    return with_shares(findings, tried)
