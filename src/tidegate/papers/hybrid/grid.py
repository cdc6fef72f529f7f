"""What is run: applications at sizes that fit and sizes that do not, under the paper's schemes; and
the speed-ups by workload, which is an application of a size.

Beside them bfs with only part of its edges accessed: are edges better left to faults, or
prefetched? (5.2, Access Density Analysis) The compiler takes the edges for densely used, whatever
the graph. The paper changes the share of edges that are accessed from 0 % to 100 % and finds the
time with edges left to faults between 29 % and 303 % of the time with edges prefetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from statistics import geometric_mean
from typing import NamedTuple

from tidegate.experiments.runs import Run
from tidegate.experiments.specification import RunSpec
from tidegate.machine.machine import Machine, load_machine
from tidegate.papers.hybrid.setup import (
    BASE,
    BASELINE,
    EACH_LAUNCH,
    LOOPS,
    MACHINE,
    MAPPED_ONCE,
    NEAR,
    ONCE,
    SCHEMES,
    Setup,
)
from tidegate.papers.ledger import times
from tidegate.papers.readings import spell_policy
from tidegate.papers.results import Groups, Key, NotRun, Results
from tidegate.workloads.suites import GB

GRID, EDGES = "grid", "edges"  # groups
EDGE_APPLICATION, EDGE_SIZE = "bfs", 9.0  # GB: a size that the section names, and one that fits
ACCESSED = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)  # share of the edges
WAYS = {"implicit": "rdm(left=edges)", "explicit": "rdm"}


class SizedApplication(NamedTuple):
    """An application of a size, in the paper's GB."""

    application: str
    gb: float

    def __str__(self) -> str:
        return f"{self.application} of {self.gb:g} GB"


def grid_of(setup: Setup) -> dict[Key, RunSpec]:
    """Return applications × sizes × schemes; the baseline only for what fits."""
    return {
        (SizedApplication(a, size), scheme, GRID): specify(setup, SizedApplication(a, size), scheme)
        for a in setup.applications
        for size in setup.sizes(a)
        for scheme in (*SCHEMES, *((BASELINE,) if size < NEAR else ()))
    }


def edges_of(setup: Setup) -> dict[Key, RunSpec]:
    """Return every share of edges both ways; none unless bfs is among the applications."""
    if EDGE_APPLICATION not in setup.applications:
        return {}
    bfs = SizedApplication(EDGE_APPLICATION, EDGE_SIZE)
    return {
        (share, way, EDGES): place(setup, bfs, placement, connected=share)
        for share in ACCESSED
        for way, placement in WAYS.items()
    }


def specify(setup: Setup, workload: SizedApplication, scheme: str) -> RunSpec:
    """Return one run of the grid."""
    baseline = ONCE if workload.application in MAPPED_ONCE else EACH_LAUNCH
    placement = SCHEMES.get(scheme, baseline)
    if setup.threshold != 0.5 and placement.partition("(")[0] in ("rlm", "glm", "rdm"):
        placement = spell_policy(placement, {"threshold": setup.threshold})
    return place(setup, workload, placement)


def place(setup: Setup, workload: SizedApplication, placement: str, **options: object) -> RunSpec:
    """Return one run under any placement, of a workload with any options."""
    if setup.distances != "launches":
        options["distances"] = setup.distances
    given = [f"{k}={v}" for k, v in options.items()]
    if workload.application in LOOPS[setup.loops]:
        given.append(LOOPS[setup.loops][workload.application])
    name = f"openmp-{workload.application}"
    return RunSpec(
        f"{name}({', '.join(given)})" if given else name,
        machine_of(setup),
        "uvm",
        placement=placement,
        bytes=round(workload.gb * GB * setup.scale),
        near=round(load_machine(MACHINE).near.bytes * setup.scale),
    )


def machine_of(setup: Setup) -> str | Machine:
    """Return the machine, with another cost of unmapping if one is given."""
    if setup.unmap is None:
        return MACHINE
    machine = load_machine(MACHINE)
    one = {"unmap_per_kib": 1000 * setup.unmap, "unmap_prefetched_per_kib": None}
    return replace(machine, driver=replace(machine.driver, **one))  # type: ignore[arg-type]


# Speed-ups by application and size

Gains = dict[SizedApplication, float]


class Schemes(Results):
    """Runs by (workload, scheme)."""

    @classmethod
    def from_groups(cls, groups: Groups) -> Schemes:
        return cls(groups.get(GRID, Results({})).runs)

    def workloads(
        self, fits: bool | None = None, among: Iterable[str] = ()
    ) -> list[SizedApplication]:
        """Return the workloads that fit, those that do not, or all."""
        only = set(among)
        return [
            w
            for w in self.applications
            if (not only or w.application in only) and (fits is None or (w.gb < NEAR) == fits)
        ]

    def gains(
        self,
        scheme: str,
        base: str = BASE,
        fits: bool | None = None,
        among: Iterable[str] = (),
        what: Callable[[Run], float] = lambda run: run.time,
    ) -> Gains:
        """Return how many times faster a scheme is than ``base``, or has less of ``what``."""
        found = {
            w: what(self.runs[w, base]) / what(self.runs[w, scheme])
            for w in self.workloads(fits, among)
            if (w, scheme) in self.runs and (w, base) in self.runs
        }
        if not found:
            kind = {True: "that fits ", False: "larger than near memory ", None: ""}[fits]
            raise NotRun(f"nothing {kind}was run under both {scheme} and {base}")
        return found


def mean_gain(gains: Mapping[SizedApplication, float]) -> float:
    """Return the geometric mean over workloads, as in the paper."""
    return geometric_mean(gains.values())


def by_application(gains: Gains) -> dict[str, float]:
    """Return each application's geometric mean over its sizes."""
    names = dict.fromkeys(w.application for w in gains)
    return {a: geometric_mean([g for w, g in gains.items() if w.application == a]) for a in names}


def traffic(run: Run) -> float:
    """Return bytes over the link, both ways and remote; at least a page, so that ratios exist."""
    moved = ("pages_in", "pages_home", "pages_written_back", "pages_sampled")
    page = run.facts["page_bytes"]
    return max(page * sum(run.counts[c] for c in moved) + run.counts["remote_bytes"], page)


def ranked(gains: Mapping[str, float]) -> str:
    """Return applications and their gains, the largest first."""
    largest_first = sorted(gains.items(), key=lambda item: -item[1])
    return ", ".join(f"{a} {times(g)}" for a, g in largest_first)


def implicit_over_explicit(groups: Groups) -> dict[float, float]:
    """Return time with edges left to faults over time with edges prefetched, by share accessed."""
    if EDGES not in groups:
        raise NotRun("bfs was not run with part of its edges accessed")
    return groups[EDGES].ratios("implicit", "explicit")
