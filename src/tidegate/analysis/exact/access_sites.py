"""Which references deserve memory: what each one's data wait for, what a lease would bring, and
what LEU makes of it.

The distribution of a reference says how long its data wait for the next use; its best lease is the
one with the most hits per touch of staying, right after a touch (Chen et al., MEMSYS'19, equation
2). Its share of memory and of hits is what LEU by references gives it and gets from it in memory of
one size: a hit belongs to the reference whose touch it follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidegate.analysis.exact.intervals import NEVER, TouchSequence
from tidegate.analysis.exact.leu import leu_stays
from tidegate.errors import TidegateError
from tidegate.policies.eviction.leu.phases import LEASE, LEFT, WITHIN, phases_of
from tidegate.trace import Trace


@dataclass(frozen=True, eq=False)
class AccessSiteWorth:
    """One reference.

    Intervals are counted in touches of other regions (or pages); shares are of all references'.
    """

    reference: int
    object: str  # the one it touches most
    touches: int
    reused: float  # the share of its touches that is followed by another of the same data
    intervals: NDArray[np.int32]  # of those, rising
    lease: int | None  # with the most hits per touch of staying; None: it has no reuse
    lease_hits: float  # the share of its touches that this lease makes hits
    hits: float  # its share of LEU's hits
    memory: float  # its share of memory, over time

    def quantile(self, share: float) -> int | None:
        """The interval that so large a share of its reuses is within."""
        if not len(self.intervals):
            return None
        return int(self.intervals[min(len(self.intervals) - 1, int(share * len(self.intervals)))])

    @property
    def worth(self) -> float:
        """Hits for memory: above 1 it earns more than its share."""
        return self.hits / self.memory if self.memory else 0.0


@dataclass(frozen=True, eq=False)
class AccessSiteAnalysis:
    """What :func:`analyze_access_sites` found; the references with the most hits first."""

    name: str
    unit: str
    unit_bytes: int
    touches: int  # runs of touches of the same region count once
    distinct: int
    capacity: int
    hits: int
    references: tuple[AccessSiteWorth, ...]

    def plot(self, path: str | Path) -> Path:
        """Draw the distributions, and the shares of touches, memory and hits; the suffix says the
        format.
        """
        from tidegate.analysis.exact.plot import figure
        from tidegate.figures import save_figure

        save_figure(figure(self), Path(path), title=f"{self.name}: which references deserve memory")
        return Path(path)


def analyze_access_sites(
    trace: Trace, touches: TouchSequence, unit: str, unit_bytes: int, capacity: int
) -> AccessSiteAnalysis:
    """Look at every reference of a trace, and at LEU by references in ``capacity`` frames."""
    distinct = len(np.unique(touches.ids))
    if capacity >= distinct:
        raise TidegateError(
            f"with {capacity} {unit}s in memory all {distinct} of {trace.name} fit and nothing is evicted; give it less"
        )
    intervals = touches.intervals()
    stays = leu_stays(touches, capacity)
    hit = (stays == intervals) & (intervals != NEVER)
    phases = phases_of(touches.histograms())
    all_hits, all_memory = max(1, int(hit.sum())), max(1, int(stays.sum(dtype=np.int64)))
    names = objects_of(trace, touches.ids, unit)
    found = []
    for owner in np.unique(touches.owners).tolist():
        own = touches.owners == owner
        waited = np.sort(intervals[own & (intervals != NEVER)])
        lease, within, left = phases.rows[phases.first[owner], [LEASE, WITHIN, LEFT]].tolist()
        most = np.bincount(names[own]).argmax()
        reused, lease_hits = len(waited) / int(own.sum()), within / left
        hits, memory = (
            int(hit[own].sum()) / all_hits,
            int(stays[own].sum(dtype=np.int64)) / all_memory,
        )
        best = lease if within else None
        name = trace.objects[most].name
        found.append(
            AccessSiteWorth(
                owner, name, int(own.sum()), reused, waited, best, lease_hits, hits, memory
            )
        )
    found.sort(key=lambda r: (-r.hits, r.reference))
    return AccessSiteAnalysis(
        trace.name,
        unit,
        unit_bytes,
        len(touches.ids),
        distinct,
        capacity,
        int(hit.sum()),
        tuple(found),
    )


def objects_of(trace: Trace, ids: NDArray[np.int32], unit: str) -> NDArray[np.int64]:
    """The number of the object each id belongs to."""
    per_id = trace.geometry.pages_per_region if unit == "region" else 1
    firsts = np.array([o.first_page for o in trace.objects])
    order = np.argsort(firsts)
    return order[np.searchsorted(firsts[order], ids.astype(np.int64) * per_id, side="right") - 1]
