"""What is run: applications at sizes that fit and sizes that do not, under the paper's schemes.

Beside them bfs with only part of its edges accessed: are edges better left to faults, or
prefetched? (5.2, Access Density Analysis) The compiler takes the edges for densely used, whatever
the graph. The paper changes the share of edges that are accessed from 0 % to 100 % and finds the
time with edges left to faults between 29 % and 303 % of the time with edges prefetched.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from tidegate.experiments.specification import RunSpec
from tidegate.machine.machine import Machine, load_machine
from tidegate.papers.hybrid.setup import BASELINES, LOOPS, MACHINE, NEAR, SCHEMES, Setup
from tidegate.papers.readings import spell_policy
from tidegate.papers.results import Key
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
    """Return applications × sizes × schemes; baselines only for what fits."""
    return {
        (SizedApplication(a, size), scheme, GRID): specify(setup, SizedApplication(a, size), scheme)
        for a in setup.applications
        for size in setup.sizes(a)
        for scheme in (*SCHEMES, *(BASELINES if size < NEAR else ()))
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
    placement = (SCHEMES | BASELINES)[scheme]
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
