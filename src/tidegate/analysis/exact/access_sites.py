"""Which access sites deserve memory: their reuse intervals, their best leases, and their shares of
memory and hits under LEU.

The distribution of an access site (MEMSYS'19: reference) shows how long its data wait for the next
use. Its best lease is the one with the most hits per touch of staying, right after a touch (Chen et
al., equation 2). Its shares are those under LEU by access sites in memory of one size. A hit counts
for the site of the touch before it.
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
    """One access site.

    Intervals are in touches of other regions (or pages). ``hits`` and ``memory`` are shares of the
    totals.
    """

    site: int
    object: str  # the one it touches most
    touches: int
    reused: float  # the share of its touches with a later touch of the same data
    intervals: NDArray[np.int32]  # of those, rising
    lease: int | None  # with the most hits per touch of staying; None: it has no reuse
    lease_hits: float  # the share of its touches that are followed by a hit with this lease
    hits: float  # its share of LEU's hits
    memory: float  # its share of memory, over time

    def quantile(self, share: float) -> int | None:
        """Return the interval that this share of its reuses does not exceed."""
        if not len(self.intervals):
            return None
        return int(self.intervals[min(len(self.intervals) - 1, int(share * len(self.intervals)))])

    @property
    def worth(self) -> float:
        """Hits per memory: above 1, it has more hits than its share of memory."""
        return self.hits / self.memory if self.memory else 0.0


@dataclass(frozen=True, eq=False)
class AccessSiteAnalysis:
    """The result of :func:`analyze_access_sites`: the sites with the most hits first."""

    name: str
    unit: str
    unit_bytes: int
    touches: int  # runs of touches of the same region count once
    distinct: int
    capacity: int
    hits: int
    sites: tuple[AccessSiteWorth, ...]

    def plot(self, path: str | Path) -> Path:
        """Draw the distributions and the shares; the suffix is the format."""
        from tidegate.analysis.exact.plot import figure
        from tidegate.display.figures import save_figure

        save_figure(figure(self), Path(path), f"{self.name}: which access sites deserve memory")
        return Path(path)


def analyze_access_sites(
    trace: Trace, touches: TouchSequence, unit: str, unit_bytes: int, capacity: int
) -> AccessSiteAnalysis:
    """Analyze every access site of a trace, and LEU by access sites in ``capacity`` frames."""
    distinct = len(np.unique(touches.ids))
    if capacity >= distinct:
        raise TidegateError(
            f"capacity must be below the {distinct} {unit}s of {trace.name}, got {capacity}: "
            "all fit and nothing is evicted"
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
        count, waited = int(own.sum()), np.sort(intervals[own & (intervals != NEVER)])
        lease, within, left = phases.rows[phases.first[owner], [LEASE, WITHIN, LEFT]].tolist()
        worth = AccessSiteWorth(
            site=owner,
            object=trace.objects[np.bincount(names[own]).argmax()].name,
            touches=count,
            reused=len(waited) / count,
            intervals=waited,
            lease=lease if within else None,
            lease_hits=within / left,
            hits=int(hit[own].sum()) / all_hits,
            memory=int(stays[own].sum(dtype=np.int64)) / all_memory,
        )
        found.append(worth)
    found.sort(key=lambda worth: (-worth.hits, worth.site))
    totals = len(touches.ids), distinct, capacity, int(hit.sum())
    return AccessSiteAnalysis(trace.name, unit, unit_bytes, *totals, tuple(found))


def objects_of(trace: Trace, ids: NDArray[np.int32], unit: str) -> NDArray[np.int64]:
    """Return the number of the object that each id belongs to."""
    per_id = trace.geometry.pages_per_region if unit == "region" else 1
    firsts = np.array([o.first_page for o in trace.objects])
    order = np.argsort(firsts)
    return order[np.searchsorted(firsts[order], ids.astype(np.int64) * per_id, side="right") - 1]
