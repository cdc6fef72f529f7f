"""bfs with only part of its edges accessed: are they better left to faults, or prefetched? (5.2,
Access Density Analysis)

The compiler takes the edges for densely used, whatever the graph. The paper changes the share of
edges that are accessed from 0 % to 100 % and finds the time with edges left to faults between 29 %
and 303 % of the time with edges prefetched.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.experiments.runs import Run
from tidegate.experiments.specification import RunSpec
from tidegate.reproduce.hybrid.setup import Setup
from tidegate.reproduce.results import NotRun

APPLICATION, SIZE = "bfs", 9.0  # GB: a size that the section names, and one that fits
ACCESSED = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)  # share of the edges
WAYS = {"implicit": "rdm(left=edges)", "explicit": "rdm"}

EdgeKey = tuple[float, str]  # share, way


def edge_asks(setup: Setup) -> dict[EdgeKey, RunSpec]:
    """Every share both ways; none unless bfs is among the applications."""
    if APPLICATION not in setup.applications:
        return {}
    return {
        (share, way): setup.ask_spec(APPLICATION, SIZE, spec, connected=share)
        for share in ACCESSED
        for way, spec in WAYS.items()
    }


def implicit_over_explicit(runs: Mapping[EdgeKey, Run]) -> dict[float, float]:
    """Time with edges left to faults, over time with edges prefetched, by share."""
    if not runs:
        raise NotRun("bfs was not run with part of its edges accessed")
    return {
        share: runs[share, "implicit"].time / runs[share, "explicit"].time
        for share, way in runs
        if way == "implicit"
    }
