"""What ObservUVM leaves open (--robustness)."""

from __future__ import annotations

from dataclasses import replace

from tidegate.experiments.specification import RunSpec
from tidegate.policies.prefetch.together import make_prefetch
from tidegate.policies.registries import eviction
from tidegate.reproduce.observuvm.grid import GRID, specify
from tidegate.reproduce.observuvm.setup import ROBUST_SCALE, Setup
from tidegate.reproduce.readings import Reading, Readings, own_options, spell_policy
from tidegate.reproduce.results import Key

# Option → values, the default first. The text is silent on each, or the machine decides it.
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
_TOURNAMENT = ("observe", "lfu", "cp", "tournament")
DEPENDS = {
    "ea": ("early-adaptor",),
    "lru": ("observe",),
    "lfu": ("observe", "lfu"),
    "cp": ("observe", "cp"),
    "tm": _TOURNAMENT,
    "tm+": (*_TOURNAMENT, "fdp"),
    "tm++": (*_TOURNAMENT, "fdp", "rgp"),
}
# A tournament depends on nearly every option, so readings share hardly any of its runs. It is run
# under the first few only.
TOURNAMENTS = 64


def specify_reading(setup: Setup, key: Key, options: Reading) -> RunSpec:
    """Return a run of the grid under a reading's options."""
    application, system, _ = key
    run = replace(
        specify(setup, setup.applications[application], system),
        dirty_only=options["machine.dirty_only"],
        pipelined=options["machine.pipelined"],
        samples=options.get("observe.samples", 0),
    )

    def spell(policy: str) -> str:
        return spell_policy(policy, own_options(policy, options))

    if system in ("lfu", "cp"):
        return replace(run, eviction=spell(system))
    if system == "ea":
        return replace(run, prefetch=spell("early-adaptor"))
    if not system.startswith("tm"):
        return run
    contestants = f"lru+{spell('lfu')}+{spell('cp')}"
    own = own_options("tournament", options)
    tournament = eviction.find("tournament")(policies=contestants, **own)
    fdp, rgp = spell("fdp"), spell("rgp")
    prefetch = {"tm": "tree", "tm+": fdp, "tm++": f"{fdp}+{rgp}"}[system]
    return replace(run, eviction=tournament, prefetch=make_prefetch(prefetch))


def _includes(setup: Setup, key: Key, number: int) -> bool:
    _, system, group = key
    return group == GRID and (number < TOURNAMENTS or not system.startswith("tm"))


READINGS: Readings[Setup] = Readings(
    OPEN,
    ("machine",),
    DEPENDS,
    specify_reading,
    reduce=lambda setup: replace(setup, scale=setup.robust_scale),
    includes=_includes,
    remark=(
        f", at {ROBUST_SCALE:g} of the paper's sizes; "
        f"tournaments in at most {TOURNAMENTS} of them. "
        "Small sizes change some results"
    ),
)
