"""Interval table: the paper's Ref RIT, a bounded table of access sites and the reuse intervals of
their data.

Intervals are counted in buckets whose width doubles every two, and count as the longest of their
bucket. So a distribution has a fixed size, and a lease is a bucket's end. Priorities are exact for
these rounded intervals. Counts arrive in batches. The phases of an access site are computed again
after a batch that has counts for it, not at every decision (Chen et al., MEMSYS'19, section 3.3).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np

from tidegate.policies.eviction.leu.phases import RARER, Histograms, phases_of

BUCKETS = 60
# EDGES[i] is the least interval in bucket i: 0, 1, 2, 3, 4, 6, 8, 12, 16 … up to 2³⁰ touches
_DOUBLING = sorted({int(2**k * part) for k in range(1, 33) for part in (1, 1.5)})
EDGES = [0, 1, *_DOUBLING][: BUCKETS + 1]
LONGEST = [edge - 1 for edge in EDGES[1:]]
_LONGEST = np.array(LONGEST, np.int32)


def bucket_of(interval: int) -> int:
    """Return the bucket of an interval. The last one has all longer ones, too.

    >>> [bucket_of(i) for i in (0, 1, 2, 3, 5, 6, 100)]
    [0, 1, 2, 3, 4, 5, 13]
    """
    if interval < 2:
        return max(0, interval)
    power = interval.bit_length() - 1
    return min(2 * power + (interval >> (power - 1) & 1), BUCKETS - 1)


@dataclass
class SiteEntry:
    """An access site in the table: its known touches, their intervals by bucket, and the phases of
    its priority (phases.py).
    """

    place: int
    touches: int = 0
    counts: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    phases: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.refresh()

    def refresh(self) -> None:
        """Compute equations 1 and 2 for every TESLA, as phases: first TESLA, best lease, touches
        within it, touches left.
        """
        seen = np.flatnonzero(self.counts)
        upto = np.cumsum(self.counts)[seen].astype(np.int32)
        first, touches = np.array([0, len(seen)]), np.array([self.touches])
        phases = phases_of(Histograms(first, _LONGEST[seen], upto, touches))
        self.phases = phases.rows[phases.first[0] : phases.last[0] + 1, :RARER].tolist()
        self._starts = [phase[0] for phase in self.phases]

    def priority(self, tesla: int) -> tuple[float, int]:
        """Return the largest PPUC of all leases, and the TESLA up to which it rises.

        If no further use is expected, it stays 0, and the oldest region is the lowest.
        """
        phase = bisect_right(self._starts, tesla) - 1
        _, lease, within, left = self.phases[phase]
        if not within:
            return 0.0, 0
        return within / (float(left) * float(lease - tesla)), self._starts[phase + 1]


class IntervalTable:
    """A table of at most ``size`` access sites.

    All others share one entry, which has the last place. With ``forget``, an entry that has so many
    touches is halved, so that older ones count for less.
    """

    def __init__(self, size: int, batch: int, forget: int = 0):
        self.size, self._batch, self._forget = size, batch, forget
        self.entries: dict[int, SiteEntry] = {}
        self.by_place: list[SiteEntry] = []
        self.others = SiteEntry(size)
        self._pending: list[tuple[int, int, int]] = []
        self.replaced = 0

    def place(self, reference: int) -> int:
        """Return the place of this access site's entry."""
        return self.entries.get(reference, self.others).place

    def at(self, place: int) -> SiteEntry:
        """Return the entry in this place."""
        return self.by_place[place] if place < self.size else self.others

    def saw(self, reference: int, reuses: int, interval: int) -> bool:
        """Record that ``reuses`` touches by this access site had this interval; 0: one touch that
        has no successor so far.

        Return whether the batch is full and is to be counted.
        """
        self._pending.append((reference, reuses, bucket_of(interval)))
        return len(self._pending) >= self._batch

    def take_in(self) -> list[int]:
        """Count the batch. Return the places whose access sites were replaced."""
        changed, freed = set(), []
        for reference, reuses, bucket in self._pending:
            if reference not in self.entries:
                freed += self._admit(reference)
            entry = self.entries[reference]
            entry.touches += max(reuses, 1)
            entry.counts[bucket] += reuses
            if self._forget and entry.touches >= self._forget:
                entry.touches //= 2
                entry.counts = [count // 2 for count in entry.counts]
            changed.add(entry.place)
        self._pending.clear()
        for place in changed:
            self.by_place[place].refresh()
        return freed

    def _admit(self, reference: int) -> list[int]:
        """Add an entry. In a full table it replaces the one with the fewest touches, the first of
        equals.
        """
        if len(self.entries) < self.size:
            self.entries[reference] = SiteEntry(len(self.entries))
            self.by_place.append(self.entries[reference])
            return []
        place = min(range(self.size), key=lambda p: self.by_place[p].touches)
        del self.entries[next(r for r, entry in self.entries.items() if entry.place == place)]
        self.entries[reference] = self.by_place[place] = SiteEntry(place)
        self.replaced += 1
        return [place]
