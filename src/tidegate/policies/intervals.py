"""IntervalTable: the paper's Ref RIT, a bounded table of references and how long their data wait for the next use.

Intervals are counted in buckets that double every two, so a distribution has a fixed size, and its leases are the
buckets' edges. Counts arrive in batches; what LEU needs of a reference is worked out again when a batch brought
something for it, not at every decision (Chen et al., MEMSYS'19, section 3.3).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

BUCKETS = 64
# EDGES[i] is the least interval in bucket i: 0, 1, 2, 3, 4, 6, 8, 12, 16 … up to 2³² touches
EDGES = [0, 1, *sorted({int(2**k * part) for k in range(1, 33) for part in (1, 1.5)})][: BUCKETS + 1]
_EDGES = np.array(EDGES, np.float64)


def bucket_of(interval: int) -> int:
    """The bucket an interval, or a TESLA, falls in.

    >>> [bucket_of(i) for i in (0, 1, 2, 3, 5, 6, 100)]
    [0, 1, 2, 3, 4, 5, 13]
    """
    if interval < 2:
        return max(0, interval)
    power = interval.bit_length() - 1
    return min(2 * power + (interval >> (power - 1) & 1), BUCKETS - 1)


@dataclass
class Reference:
    """One entry: touches known, their intervals by bucket, and for every bucket of TESLA the best lease and its profit."""

    place: int
    touches: int = 0
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(BUCKETS, np.int64))
    lease: list[float] = field(default_factory=list)
    profit: list[float] = field(default_factory=list)

    def refresh(self) -> None:
        """Equations 1 and 2 at the beginning of every bucket: a lease ends where its bucket does."""
        upto = np.cumsum(self.counts)
        # row: TESLA's bucket, whose own interval may still be to come; column: the bucket the lease ends with
        passed = np.append(0, upto[:-1])[:, None]
        within = np.triu(upto[None, :] - passed)
        left = np.maximum(self.touches - passed, 1)
        cost = np.where(within > 0, _EDGES[None, 1:] - _EDGES[:-1, None], np.inf)
        best = np.argmax(within / left / cost, axis=1)
        rows = np.arange(BUCKETS)
        self.lease, self.profit = _EDGES[1:][best].tolist(), (within / left)[rows, best].tolist()

    def priority(self, bucket: int, tesla: int) -> float:
        """The PPUC of the lease chosen for this bucket; 0 if no use is expected any more."""
        return self.profit[bucket] / max(self.lease[bucket] - tesla, 1)


class IntervalTable:
    """At most ``size`` references. Those that are not in it share one nameless entry, the last place."""

    def __init__(self, size: int, batch: int):
        self.size, self._batch = size, batch
        self.entries: dict[int, Reference] = {}
        self.others = Reference(size)
        self._pending: list[tuple[int, int, int]] = []
        self.replaced = 0
        self.others.refresh()

    def entry(self, reference: int) -> Reference:
        """The entry that speaks for this reference."""
        return self.entries.get(reference, self.others)

    def saw(self, reference: int, reuses: int, interval: int) -> bool:
        """So many touches of this reference were followed by another after this interval; 0: by none so far.

        True: that makes a batch, which is to be taken in.
        """
        self._pending.append((reference, reuses, bucket_of(interval)))
        return len(self._pending) >= self._batch

    def take_in(self) -> list[int]:
        """Count the batch. The places whose references were replaced."""
        changed, freed = set(), []
        for reference, reuses, bucket in self._pending:
            if reference not in self.entries:
                freed += self._admit(reference)
            entry = self.entries[reference]
            entry.touches += max(reuses, 1)
            entry.counts[bucket] += reuses
            changed.add(reference)
        self._pending.clear()
        for reference in changed & self.entries.keys():
            self.entries[reference].refresh()
        return freed

    def _admit(self, reference: int) -> list[int]:
        """Make an entry; in a full table the reference with the fewest touches gives way."""
        if len(self.entries) < self.size:
            self.entries[reference] = Reference(len(self.entries))
            return []
        coldest = min(self.entries, key=lambda r: self.entries[r].touches)
        place = self.entries.pop(coldest).place
        self.entries[reference] = Reference(place)
        self.replaced += 1
        return [place]
