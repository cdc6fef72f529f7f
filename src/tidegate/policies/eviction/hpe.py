"""Hierarchical page eviction, for GPUs that do not prefetch."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice

from tidegate.options import Option
from tidegate.policies.interface.policy import Decision, EvictionPolicy
from tidegate.policies.registries import eviction
from tidegate.policies.structures.order import Chain


@eviction("hpe")
class HPE(EvictionPolicy):
    """Classify the program when memory is full, by how full its chunks are; then use MRU-C, LRU, or
    both in turn (CPPE, II-C).

    MRU-C takes the first well-filled chunk from the MRU end of the old partition. Where chunks are
    prefetched whole, all are well filled and every program looks regular: CPPE corrects this.

    CPPE gives HPE in outline only. Our choices for what it leaves open: a program is regular if its
    chunks are ``regular`` full on average, irregular#1 below ``irregular``, irregular#2 in between;
    a well-filled chunk has all its pages; a regular program's search begins one chunk further on
    for each wrong eviction; in irregular#2 a strategy gives way after an interval with a wrong
    eviction, if it has lasted no longer than the other did.
    """

    interval = Option(64, "faults in an interval", least=1)
    regular = Option(
        0.75,
        "mean share of a chunk's pages that came, from which a program is regular",
        least=0,
        most=1,
    )
    irregular = Option(0.5, "the same, below which it is irregular#1", least=0, most=1)
    limit = Option(32, "chunks by which the search's beginning may move on at most", least=0)
    buffer = Option(8, "recently evicted chunks that are remembered", least=1)

    def start(self) -> None:
        self._chain = Chain(self.interval, True, self.memory)
        self._evicted: deque[int] = deque(maxlen=self.buffer)
        self._filled: set[int] = set()
        self.kind = ""  # until memory is full
        self.strategy = "mru-c"
        self._distance = self._wrong = self._lasted = self._other_lasted = self._intervals = 0

    def on_fault(self, region: int) -> None:
        if region in self._evicted:
            self._evicted.remove(region)
            self._wrong += 1
        if self._chain.migrated(region) and self.kind:
            self._end_interval()

    def on_eviction(self, region: int) -> None:
        self._chain.evicted(region)
        self._filled.discard(region)
        self._evicted.append(region)

    def on_free(self, region: int) -> None:
        self._chain.evicted(region)
        self._filled.discard(region)

    def victim(self) -> int:
        if not self.kind:
            self._classify()
        if self.strategy == "lru":
            return self._chain.oldest
        return next(islice(self._well_filled(), self._distance, None), self._chain.oldest)

    def finished(self) -> None:
        assert set(self._chain) == self.resident

    def report(self) -> dict[str, object]:
        return {"kind": self.kind, "strategy": self.strategy, "chain entries": len(self._chain)}

    def decisions(self) -> list[Decision]:
        if not self.kind:
            return []
        ended = f"{self._intervals:,} intervals"
        return [
            Decision(self.kind, "memory was full"),
            Decision(f"{self.strategy}, search from {self._distance}", ended),
        ]

    def _well_filled(self) -> Iterator[int]:
        return filter(self._is_filled, self._chain.from_mru())

    def _is_filled(self, region: int) -> bool:
        if region not in self._filled and self.memory.near(region).all():
            self._filled.add(region)  # until it is evicted
        return region in self._filled

    def _classify(self) -> None:
        filled = [float(self.memory.near(r).mean()) for r in self._chain]
        mean = sum(filled) / len(filled)
        self.kind = (
            "regular"
            if mean >= self.regular
            else "irregular#1"
            if mean < self.irregular
            else "irregular#2"
        )
        self.strategy = "mru-c" if self.kind == "regular" else "lru"

    def _end_interval(self) -> None:
        self._lasted += 1
        self._intervals += 1
        if self.kind == "regular":
            self._distance = min(self._distance + self._wrong, self.limit)
        elif (
            self.kind == "irregular#2"
            and self._wrong
            and self._lasted <= max(1, self._other_lasted)
        ):
            self.strategy = "lru" if self.strategy == "mru-c" else "mru-c"
            self._lasted, self._other_lasted = 0, self._lasted
        self._wrong = 0
