"""Modified hierarchical page eviction: the eviction policy of CPPE."""

from __future__ import annotations

from collections import deque
from itertools import islice

import numpy as np

from tidegate.options import Option
from tidegate.policies.interface.policy import Decision, EvictionPolicy
from tidegate.policies.interface.visibility import TouchBits
from tidegate.policies.registries import eviction
from tidegate.policies.structures.order import Chain
from tidegate.policies.structures.patterns import Patterns, sparse_from


@eviction("mhpe")
class MHPE(EvictionPolicy):
    """Start with MRU, some chunks from the end; switch to LRU for good when many evicted pages were
    never touched.

        LRU  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒│▓▓▓▓│████  MRU  ▒ old  ▓ of the last interval  █ of this one
                         ▲◀─────┘
                   victim  forward distance: chunks skipped from the old partition's MRU end

    (CPPE, IV-B and Algorithm 1.) U1 is the untouched pages of all chunks evicted in an interval, U2
    of those in the first four, W the wrong evictions: chunks that fault again while still in a
    buffer of recently evicted ones. Under MRU they return to the LRU end, from where it does not
    take them. Patterns of sparsely used chunks go to the prefetcher (``patterns.py``) once the
    strategy is LRU (VI-C).

    Open readings: an interval is 64 pages migrated, 16 for each chunk, since "four chunks are
    prefetched in one interval", or 64 faults; intervals count from the moment memory is full; the
    MRU search passes over the middle and new partitions, as HPE's does, or over nothing. The text
    gives its reason for the LRU end, "selecting eviction candidates from the MRU position", which
    holds under MRU only; by its letter it is so under LRU, too (``head=both``).
    """

    sees = TouchBits()
    interval = Option(64, "pages in an interval", least=1)
    counts = Option(
        "pages", "what an interval counts: pages migrated or faults", choices=("pages", "faults")
    )
    t1 = Option(32, "U1 from which LRU takes over", least=5)
    t2 = Option(40, "U2 from which LRU takes over", least=1)
    t3 = Option(32, "the forward distance grows while it is no more than this", least=0)
    nearest = Option(2, "least forward distance at first", least=0)
    farthest = Option(8, "greatest forward distance at first", least=0)
    skip = Option("new", "what the MRU search passes over first", choices=("new", "nothing"))
    sparse = Option(
        0,
        "untouched pages from which a pattern is recorded; 0: half a chunk's, 8 of 16 (IV-C)",
        least=0,
    )
    head = Option(
        "mru",
        "under which strategy wrongly evicted chunks return to the LRU end",
        choices=("mru", "both"),
    )
    patterns = Option("lru", "when patterns are recorded", choices=("lru", "always"))

    def start(self) -> None:
        self._head_of_both = self.head == "both"
        self._chain = Chain(self.interval, self.counts == "faults", self.memory)
        self._patterns = Patterns.of(self.memory)
        self._patterns.kept = True
        self.strategy = "mru"
        self.distance = -1  # until memory is full
        self._evicted: deque[int] = deque(maxlen=8)
        self._untouched = self._wrong = self._first_untouched = self._intervals = 0
        self._most_untouched = 0  # of an interval, of the first four
        self._switched_after = 0  # intervals, when LRU took over
        self._longest = 0
        self._sparse = sparse_from(self.sparse, self.memory)

    def on_fault(self, region: int) -> None:
        wrong = region in self._evicted
        if wrong:
            self._evicted.remove(region)
            self._wrong += 1
        # the LRU end is where MRU takes nothing from; under LRU it is the next to go again
        at_head = wrong and (self.strategy == "mru" or self._head_of_both)
        over = self._chain.migrated(region, at_head=at_head)
        self._longest = max(self._longest, len(self._chain))
        if over and self.distance >= 0:
            self._end_interval()

    def on_eviction(self, region: int) -> None:
        touched = self.memory.touched(region)
        untouched = int((self.memory.near(region) & ~touched).sum())
        self._untouched += untouched
        if untouched >= self._sparse and (self.strategy == "lru" or self.patterns == "always"):
            self._patterns.record(region, frozenset(np.flatnonzero(touched).tolist()))
        self._chain.evicted(region)
        self._evicted.append(region)

    def on_free(self, region: int) -> None:
        self._chain.evicted(region)

    def victim(self) -> int:
        if self.distance < 0:
            self._memory_is_full()
        if self.strategy == "lru":
            return self._chain.oldest
        recent = self._chain.from_mru(skip_recent=self.skip == "new")
        return next(islice(recent, self.distance, None), self._chain.oldest)

    def finished(self) -> None:
        assert set(self._chain) == self.resident

    def report(self) -> dict[str, object]:
        return {
            "strategy": self.strategy,
            "untouched, most": self._most_untouched,
            "untouched, first four": self._first_untouched,
            "distance": self.distance,
            "chain entries": self._longest,
            "evicted entries": self._evicted.maxlen,
            "pattern entries": self._patterns.longest,
        }

    def decisions(self) -> list[Decision]:
        if self.distance < 0:
            return []
        made = [Decision("mru", "memory was full")]
        if self.strategy == "lru":
            made.append(Decision("lru for good", f"{self._switched_after:,} intervals"))
        forward = Decision(f"forward distance {self.distance}", f"{self._intervals:,} intervals")
        return [*made, forward]

    def _memory_is_full(self) -> None:
        length = len(self._chain)
        self.distance = min(max(length // 100, self.nearest), self.farthest)
        self._evicted = deque(maxlen=max(8, length // 64 * 8))

    def _end_interval(self) -> None:
        self._intervals += 1
        if self._intervals <= 4:
            self._first_untouched += self._untouched
            self._most_untouched = max(self._most_untouched, self._untouched)
        if self.strategy == "mru":
            if self._untouched >= self.t1 or (
                self._intervals == 4 and self._first_untouched >= self.t2
            ):
                self.strategy, self._switched_after = "lru", self._intervals
            elif self.distance <= self.t3:
                self.distance += max(self._level(self._untouched), self._wrong)
        self._untouched = self._wrong = 0

    def _level(self, untouched: int) -> int:
        """Five ranges: 0-3, 4-10, 11-17, 18-24 and 25-31, for a T1 of 32 (VI-A)."""
        return 0 if untouched < 4 else 1 + (untouched - 4) * 4 // (self.t1 - 4)
