"""The runs by application, size and scheme, and their ratios."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import geometric_mean

from tidegate.experiments.runs import Run
from tidegate.reproduce.hybrid.edges import EdgeKey
from tidegate.reproduce.hybrid.setup import BASE, NEAR, Key
from tidegate.reproduce.results import NotRun


@dataclass(frozen=True)
class Grid:
    """Runs by (application, size in GB, scheme), and those of bfs with part of its edges accessed."""

    runs: Mapping[Key, Run]
    edges: Mapping[EdgeKey, Run] = field(default_factory=dict)

    def run(self, application: str, size: float, scheme: str) -> Run:
        found = self.runs.get((application, size, scheme))
        if found is None:
            raise NotRun(f"{application} of {size:g} GB was not run under {scheme}")
        return found

    def workloads(
        self, fits: bool | None = None, among: Iterable[str] = ()
    ) -> list[tuple[str, float]]:
        """Applications and sizes; those that fit, those that do not, or all."""
        only = set(among)
        every = dict.fromkeys((a, size) for a, size, _ in self.runs if not only or a in only)
        return [(a, size) for a, size in every if fits is None or (size < NEAR) == fits]

    def gains(
        self,
        scheme: str,
        base: str = BASE,
        fits: bool | None = None,
        among: Iterable[str] = (),
        what: Callable[[Run], float] = lambda run: run.time,
    ) -> dict[tuple[str, float], float]:
        """How many times faster a scheme is than ``base`` (or how many times less of ``what``), by
        workload.
        """
        found = {
            (a, size): what(self.runs[a, size, base]) / what(self.runs[a, size, scheme])
            for a, size in self.workloads(fits, among)
            if (a, size, scheme) in self.runs and (a, size, base) in self.runs
        }
        if not found:
            kind = {True: "that fits ", False: "larger than near memory ", None: ""}[fits]
            raise NotRun(f"nothing {kind}was run under both {scheme} and {base}")
        return found


def mean_gain(gains: Mapping[tuple[str, float], float]) -> float:
    """The geometric mean over workloads, as the paper takes it."""
    return geometric_mean(gains.values())


def by_application(gains: Mapping[tuple[str, float], float]) -> dict[str, float]:
    """Each application's geometric mean over its sizes."""
    names = dict.fromkeys(a for a, _ in gains)
    return {a: geometric_mean([g for (b, _), g in gains.items() if b == a]) for a in names}


def traffic(run: Run) -> float:
    """Bytes over the link, both ways, remote accesses too; at least a page, so that ratios exist."""
    moved = sum(
        run.counts[c] for c in ("pages_in", "pages_home", "pages_written_back", "pages_sampled")
    )
    return max(
        run.facts["page_bytes"] * moved + run.counts["remote_bytes"], run.facts["page_bytes"]
    )


def ranked(gains: Mapping[str, float]) -> str:
    """Applications and their gains, the largest first."""
    return ", ".join(
        f"{a} {g:.2f}×"
        for a, g in sorted(gains.items(), key=lambda item: -item[1])
        if math.isfinite(g)
    )
