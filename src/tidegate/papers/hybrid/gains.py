"""Speed-ups by workload, which is an application of a size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from statistics import geometric_mean

from tidegate.experiments.runs import Run
from tidegate.papers.hybrid.grid import EDGES, GRID, Workload
from tidegate.papers.hybrid.setup import BASE, NEAR
from tidegate.papers.ledger import times
from tidegate.papers.results import Groups, NotRun, Results

Gains = dict[Workload, float]


class Schemes(Results):
    """Runs by (workload, scheme)."""

    @classmethod
    def of(cls, groups: Groups) -> Schemes:
        return cls(groups.get(GRID, Results({})).runs)

    def workloads(self, fits: bool | None = None, among: Iterable[str] = ()) -> list[Workload]:
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


def mean_gain(gains: Gains) -> float:
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
