"""The reproduction of ObservUVM: what is run, and what the paper leaves open (--robustness)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tidegate.experiments.specification import RunSpec
from tidegate.options import parse_spec
from tidegate.papers import paper
from tidegate.papers.ledger import Finding
from tidegate.papers.observuvm.figures import grid_figures, spread_figure, sweep_figures
from tidegate.papers.observuvm.findings import grid_findings
from tidegate.papers.observuvm.locality import Recorder, locality_figure, locality_findings
from tidegate.papers.observuvm.saturation import (
    PinnedFar,
    Probe,
    saturation_figure,
    saturation_findings,
)
from tidegate.papers.observuvm.setup import (
    FIGURE_3,
    FIGURE_5,
    GRID,
    MACHINE,
    PROBED,
    ROBUST_SCALE,
    SWEPT,
    TOURNAMENTS,
    Setup,
    spread_group,
    sweep_group,
)
from tidegate.papers.readings import Reading, Readings, counts_at, own_options, spell_policy
from tidegate.papers.report import Exhibit
from tidegate.papers.results import Groups, Key, Results
from tidegate.policies.registries import eviction, prefetch
from tidegate.registry import Registry


def grid_of(setup: Setup) -> dict[Key, RunSpec]:
    """Return all runs."""
    grid: dict[Key, RunSpec] = {
        (a, s, GRID): specify(setup, spec, s)
        for a, spec in setup.applications.items()
        for s in setup.systems
    }
    for a, spec in setup.applications.items():
        grid[a, "uvm", FIGURE_5] = replace(specify(setup, spec, "uvm"), placement=Recorder())
    grid |= {(p, PinnedFar.name, FIGURE_3): probe(p) for p in PROBED}
    for name, values in setup.swept().items():
        for value in values:
            changed: dict[str, Any] = {name: (value,)}
            other = replace(setup, **changed)
            for a, spec in setup.applications.items():
                for s in (s for s in SWEPT[name] if s in setup.systems):
                    grid[a, s, sweep_group(name, value)] = specify(other, spec, s)
    for percent in range(1, setup.spread + 1):
        for a, spec in setup.applications.items():
            for s in (s for s in TOURNAMENTS if s in setup.systems):
                run = replace(specify(setup, spec, s), machine=f"{MACHINE}(near.jitter={percent}%)")
                grid[a, s, spread_group(percent)] = run
    return grid


def specify(setup: Setup, workload: str, system: str) -> RunSpec:
    """Return one run of an application under a system."""
    run = RunSpec(workload, MACHINE, system, oversubscribe=setup.main("oversubscribe"))
    return run.change(samples=setup.main("samples"), **setup.counts)


def probe(regions: int) -> RunSpec:
    """Return the run of Figure 3 with so many regions pinned far."""
    return RunSpec(Probe(regions=regions), MACHINE, placement=PinnedFar(), prefetch="none")


# Option → values, the default first. The text is silent on each, or the machine decides it.
OPEN = {
    "lfu.remember": (True, False),  # do counts outlive an eviction?
    "lfu.fault_counts": (True, False),  # is a further fault a use?
    "lfu.width": (8, 1, 32),  # how many uses does a bin range over?
    "cp.start_share": (0.5, 0.25, 1.0),  # where does the split start?
    "cp.floor": (0.01, 0.1),
    "cp.observe_share": (0.5, 1.0),  # how much of the unprotected area is observed?
    "tournament.blame": ("pages", "batches", "evictions"),  # what is a page fault?
    "tournament.patience": (100, 3, 50, 1000),  # T of Algorithm 1; 3 are about 100 page faults
    "tournament.afresh": (False, True),  # do blames outlive a retirement?
    "fdp.every": (16, 4),  # "a few" prefetched regions
    "fdp.enough": (16, 64),  # T of Algorithm 2
    "tournament.average": ("active", "all"),  # whose blames is the average of?
    "rgp.ahead": (1, 2, 4),
    "rgp.streak": (3, 1),  # neighbours that make a stream
    "rgp.taken": ("next event", "at once"),  # does the driver take one region at the next event?
    "acbm.home": ("granule", "accessed"),  # what comes home when a counter notifies?
    "early-adaptor.again": (0.25, 0.5),  # a stand-in, so all of it is open
    "observe.samples": (0, 1),  # adapt the number of samples, or take one
    "2DC.iterations": (16, 1, 2, 3),  # calls; PolyBench makes one
    "BLK.iterations": (16, 1, 2, 3),  # 512 in NVIDIA's sample, alike but for the first
    "GMV.iterations": (16, 1, 3),  # one in NVIDIA's sample
    "SRK.double": (False, True),  # as in NVIDIA's samples
    "SR2.double": (False, True),
    "SR2.depth_ratio": (24 / 28, 32 / 24, 1.0),  # round sizes, or n = k
    "SPM.density": (9 / 16, 0.01),  # as in NVIDIA's sample, or sparse
    "machine.dirty_only": (False, True),  # are clean pages copied back?
    "machine.pipelined": (False, True),  # does eviction overlap with migration?
    "machine.near.utlb_faults": (0, 4),  # blocks fault as they stall, or µTLBs by number
}
_TOURNAMENT = ("observe", "lfu", "cp", "tournament")
DEPENDS = {
    "acbm": ("acbm",),
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
MOST_TOURNAMENTS = 64


def specify_reading(setup: Setup, key: Key, options: Reading) -> RunSpec:
    """Return a run of the grid under a reading's options.

    All that counts regions is spelled out here, at the scale of the setup.
    """
    application, system, _ = key
    workload = setup.applications[application]
    if parse_spec(workload)[0] == application:
        workload = spell_policy(workload, own_options(application, options))
    run = specify(setup, workload, system)
    if faults := options["machine.near.utlb_faults"]:
        run = replace(run, machine=f"{run.machine}(near.utlb_faults={faults})")
    run = run.change(
        dirty_only=options["machine.dirty_only"],
        pipelined=options["machine.pipelined"],
        samples=options.get("observe.samples", 0),
        count_scale=1,
    )

    def scaled_spec(policy: str, kind: Registry[Any] = eviction) -> str:
        own = own_options(policy, options)
        return spell_policy(policy, counts_at(setup.scale, kind.find(policy), own))

    if system in ("lfu", "cp"):
        return replace(run, eviction=scaled_spec(system))
    if system == "acbm":
        return replace(run, placement=spell_policy("acbm", own_options("acbm", options)))
    if system == "ea":
        return replace(run, prefetch=scaled_spec("early-adaptor", prefetch))
    if not system.startswith("tm"):
        return run
    contestants = f"lru+{scaled_spec('lfu')}+{scaled_spec('cp')}"
    tournament = spell_policy(scaled_spec("tournament"), {"policies": contestants})
    fdp, rgp = scaled_spec("fdp", prefetch), scaled_spec("rgp", prefetch)
    ahead = {"tm": "tree", "tm+": fdp, "tm++": f"{fdp}+{rgp}"}[system]
    return replace(run, eviction=tournament, prefetch=ahead)


def _includes(setup: Setup, key: Key, number: int) -> bool:
    _, system, group = key
    return group == GRID and (number < MOST_TOURNAMENTS or not system.startswith("tm"))


READINGS: Readings[Setup] = Readings(
    OPEN,
    ("machine",),
    DEPENDS,
    specify_reading,
    reduce=lambda setup: replace(setup, scale=setup.robust_scale),
    includes=_includes,
    remark=(
        f", at {ROBUST_SCALE:g} of the paper's sizes; "
        f"tournaments in at most {MOST_TOURNAMENTS} of them. "
        "Small sizes change some results"
    ),
)


class ObservUVM(paper.Paper[Setup]):
    """Figures 3, 5 and 9 to 13, and the claims O1 to O16."""

    name = "observuvm"
    setup = Setup
    readings = READINGS

    def grid(self, setup: Setup) -> Mapping[Key, object]:
        return grid_of(setup)

    def findings(self, setup: Setup, results: Groups) -> Iterable[Finding]:
        yield from grid_findings(results.get(GRID, Results({})))
        yield from locality_findings(results.get(FIGURE_5, Results({})))
        yield from saturation_findings(results.get(FIGURE_3, Results({})))

    def exhibits(self, setup: Setup, results: Groups) -> Iterable[Exhibit]:
        yield saturation_figure(results[FIGURE_3])
        yield locality_figure(results[FIGURE_5])
        yield from grid_figures(results[GRID])
        yield from sweep_figures(setup, results)
        if setup.spread:
            yield spread_figure(setup, results)

    def remarks(self, setup: Setup, results: Groups) -> Iterator[str]:
        kinds: dict[str, list[str]] = {}
        for (application, system), run in results[GRID].runs.items():
            if system == "uvm":
                kinds.setdefault(run.facts["provenance"], []).append(application)
        named = "; ".join(f"{kind} for {', '.join(names)}" for kind, names in kinds.items())
        yield f"Touches: {named}."
        yield from results[GRID].notes


PAPER = ObservUVM()
