"""What ObservUVM leaves open, and the runs of its readings (--robustness)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from tidegate.experiments.runs import Run
from tidegate.experiments.specification import RunSpec
from tidegate.policies.prefetch.together import make_prefetch
from tidegate.policies.registries import eviction
from tidegate.reproduce.kept import Kept
from tidegate.reproduce.ledger import Finding
from tidegate.reproduce.observuvm.findings import findings_of
from tidegate.reproduce.observuvm.setup import Setup
from tidegate.reproduce.readings import (
    Reading,
    Variant,
    choose,
    distinct,
    run_variants,
    spell_policy,
    variant_of,
    with_shares,
)
from tidegate.reproduce.results import Results

# Option → values, the default first. Each is a point on which the text is silent, or which the
# machine decides.
OPEN = {
    "lfu.remember": (True, False),  # do counts outlive an eviction?
    "lfu.fault_counts": (True, False),  # is a further fault a use?
    "lfu.bins": (64, 8),
    "cp.start_share": (1.0, 0.5),  # where does the split start?
    "cp.floor": (0.01, 0.1),
    "cp.observe_share": (0.5, 1.0),  # how much of the unprotected area is observed?
    "tournament.patience": (100, 50, 200),  # T of Algorithm 1
    "tournament.afresh": (False, True),  # do blames outlive a retirement?
    "fdp.every": (16, 4),  # "a few" prefetched regions
    "fdp.enough": (16, 64),  # T of Algorithm 2
    "rgp.ahead": (2, 4),
    "early-adaptor.again": (0.25, 0.5),  # a stand-in, so all of it is open
    "observe.samples": (0, 1),  # adapt the number of samples, or take one
    "machine.dirty_only": (False, True),  # are clean pages copied back?
    "machine.pipelined": (False, True),  # does eviction overlap with migration?
}
_TOURNAMENT = ("machine", "observe", "lfu", "cp", "tournament")
DEPENDS = {
    "uvm": ("machine",),
    "acbm": ("machine",),
    "ea": ("machine", "early-adaptor"),
    "lru": ("machine", "observe"),
    "lfu": ("machine", "observe", "lfu"),
    "cp": ("machine", "observe", "cp"),
    "tm": _TOURNAMENT,
    "tm+": (*_TOURNAMENT, "fdp"),
    "tm++": (*_TOURNAMENT, "fdp", "rgp"),
}
# A tournament depends on nearly every option, so readings share hardly any of its runs: it is run
# under the first few.
TOURNAMENTS = 64


def ask_variant(variant: Variant, setup: Setup) -> RunSpec:
    """The ask of one variant."""
    o = dict(variant.options)
    base = setup.ask(setup.applications[variant.application], variant.system)
    ask = replace(
        base,
        workload=Kept(str(base.workload)),
        dirty_only=o["machine.dirty_only"],
        pipelined=o["machine.pipelined"],
        samples=o.get("observe.samples", 0),
    )
    if variant.system in ("lfu", "cp"):
        return replace(ask, eviction=spell_policy(variant.system, o))
    if variant.system == "ea":
        return replace(ask, prefetch=spell_policy("early-adaptor", o))
    if variant.system.startswith("tm"):
        contestants = f"lru+{spell_policy('lfu', o)}+{spell_policy('cp', o)}"
        own = {k.partition(".")[2]: v for k, v in o.items() if k.startswith("tournament.")}
        tournament = eviction.find("tournament")(policies=contestants, **own)
        prefetch = {
            "tm": "tree",
            "tm+": spell_policy("fdp", o),
            "tm++": f"{spell_policy('fdp', o)}+{spell_policy('rgp', o)}",
        }[variant.system]
        return replace(ask, eviction=tournament, prefetch=make_prefetch(prefetch))
    return ask


def readings_of(setup: Setup) -> list[dict[tuple[str, str], Variant]]:
    """Every reading as a grid of variants; tournaments only in the first ones."""
    grids = []
    for number, reading in enumerate(choose(OPEN, setup.readings)):
        systems = [s for s in setup.systems if number < TOURNAMENTS or not s.startswith("tm")]
        grids.append(_grid(setup, systems, reading))
    return grids


def _grid(setup: Setup, systems: list[str], reading: Reading) -> dict[tuple[str, str], Variant]:
    return {
        (a, s): variant_of(a, s, reading, DEPENDS[s]) for a in setup.applications for s in systems
    }


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
    small = setup.at(setup.robust_scale)
    make = partial(ask_variant, setup=small)
    runs = run_variants(
        variants_of(small), make, repr(small), workers=workers, cache=cache, progress=progress
    )
    return with_shares(findings, _tried(readings_of(small), runs))


def _tried(
    grids: list[dict[tuple[str, str], Variant]], runs: dict[Variant, Run]
) -> Iterator[list[Finding]]:
    for grid in grids:
        yield findings_of(Results({at: runs[variant] for at, variant in grid.items()}))
