"""Least expected use, as a system could have it: sampled, in a bounded table, brought up to date in batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tidegate.options import Option
from tidegate.policies.intervals import IntervalTable, bucket_of
from tidegate.policies.order import Order
from tidegate.policies.policy import EvictionPolicy
from tidegate.policies.registries import eviction
from tidegate.policies.sees import Everything


class _Known(NamedTuple):
    """What was known of a region when it was looked at: its last touch, how many there were, and by which reference."""

    last: int
    touches: int
    reference: int


@eviction("leu")
class LEU(EvictionPolicy):
    """Evict the region that promises the fewest uses for the time it would have to stay (Chen et al., MEMSYS'19).

    The paper's RIMM. Its sampler looks at a region when it faults and when it is about to be chosen: the touches since the
    last look are as many reuses, of equal intervals. The table keeps a distribution for each reference; the reference
    that touched a region last speaks for it. A region waits in the queue of its reference and of its TESLA's bucket:

        reference r   bucket 0  │ bucket 1  │    bucket 2    │ …       Within a bucket nothing but TESLA differs, and the
                      young ··· │ ···•      │ ·········•     │         priority rises with it: of each queue only the
                                  └ the only candidates ┘              youngest can be the victim.

    So a victim is found among references × buckets candidates, however many regions are resident. Where no use is
    expected any more all are equal, and the oldest goes first. A region found to have been touched enters its bucket at the
    young end, so within a bucket the order is that of looks, and nearly that of touches.

    A reading: in the simulator clock, references and touch counts come from Everything(), and nothing is called per touch.
    """

    sees = Everything()
    in_driver = False
    sample = Option(1.0, "share of the regions whose reuses are counted", least=0, most=1)
    table = Option(256, "references that have a distribution of their own; the coldest gives way", least=1)
    batch = Option(16, "looks that are taken into the table at a time", least=1)

    def start(self) -> None:
        self._table = IntervalTable(self.table, self.batch)
        self._queues: dict[tuple[int, int], Order] = {}  # by place in the table and bucket of TESLA; none is empty
        self._queue_of: dict[int, tuple[int, int]] = {}
        self._known: dict[int, _Known] = {}
        self._arriving: dict[int, tuple[int, _Known]] = {}  # when it faulted, and what was known before

    def on_fault(self, region: int) -> None:
        if region not in self._known and region not in self._arriving:
            self._arriving[region] = self.memory.now, self._look(region)

    def on_eviction(self, region: int) -> None:
        if self._arriving.pop(region, None) is None:
            self._leave(region)
            del self._known[region]

    def victim(self) -> int:
        self._settle_arrivals()
        self._age()
        while (region := self._candidate()) is not None:
            if self.memory.touch_count(region) == self._known[region].touches:
                return region
            self._touched_since(region)
        return next(iter(self._known or self._arriving))  # whatever there is was served in this turn

    def finished(self) -> None:
        assert self._known.keys() | self._arriving.keys() == self.resident
        assert sum(map(len, self._queues.values())) == len(self._known) == len(self._queue_of)
        assert len(self._table.entries) <= self.table

    def report(self) -> dict[str, Any]:
        return {"references": len(self._table.entries), "references replaced": self._table.replaced}

    # The sampler

    def _look(self, region: int) -> _Known:
        memory = self.memory
        return _Known(memory.last_touch(region), memory.touch_count(region), memory.last_toucher(region))

    def _settle_arrivals(self) -> None:
        """Regions that faulted have been touched by now: their absence was one interval, and then more may have followed."""
        for region in [r for r in self._arriving if not self.memory.is_pinned(r)]:
            when, before = self._arriving.pop(region)
            known = self._look(region)
            touches = known.touches - before.touches
            if touches and before.touches:
                self._saw(region, before.reference, 1, when - before.last)
            elif touches:
                self._saw(region, known.reference, 0, 0)
            if touches > 1:
                self._saw(region, known.reference, touches - 1, (known.last - when) // (touches - 1))
            self._known[region] = known if touches else known._replace(last=when)  # prefetched, and not used yet
            self._enter(region)

    def _touched_since(self, region: int) -> None:
        before, known = self._known[region], self._look(region)
        touches = known.touches - before.touches
        self._saw(region, before.reference, touches, (known.last - before.last) // touches)
        self._leave(region)
        self._known[region] = known
        self._enter(region)

    def _saw(self, region: int, reference: int, reuses: int, interval: int) -> None:
        if _draw(region) < self.sample and self._table.saw(reference, reuses, interval):
            for place in self._table.take_in():
                self._make_nameless(place)

    def _make_nameless(self, place: int) -> None:
        """This place belongs to another reference now; the regions of the old one go to those without an entry."""
        for key in [key for key in self._queues if key[0] == place]:
            for region in self._queues.pop(key):
                self._append(region, (self._table.others.place, key[1]))

    # The queues

    def _enter(self, region: int) -> None:
        known = self._known[region]
        self._append(region, (self._table.entry(known.reference).place, bucket_of(self.memory.now - known.last)))

    def _append(self, region: int, key: tuple[int, int]) -> None:
        self._queue_of[region] = key
        self._queues.setdefault(key, Order()).move_to_tail(region)

    def _leave(self, region: int) -> None:
        key = self._queue_of.pop(region)
        self._queues[key].remove(region)
        if not self._queues[key]:
            del self._queues[key]

    def _age(self) -> None:
        """Regions whose TESLA has left their bucket go on. A region does so at most once per bucket and touch."""
        now = self.memory.now
        for key in sorted(self._queues):
            while (queue := self._queues.get(key)) and (to := bucket_of(now - self._known[queue.head].last)) > key[1]:
                region = queue.head
                self._leave(region)
                self._append(region, (key[0], to))

    def _candidate(self) -> int | None:
        """The region of the lowest priority, of those not served in this turn; of equals, the one touched first."""
        return min(self._candidates(), default=(0.0, 0, None))[2]

    def _candidates(self) -> Iterator[tuple[float, int, int]]:
        now, is_pinned = self.memory.now, self.memory.is_pinned
        by_place = {entry.place: entry for entry in self._table.entries.values()}
        for (place, bucket), queue in self._queues.items():
            entry = by_place.get(place, self._table.others)
            hopeless = not entry.profit or entry.profit[bucket] == 0
            region = next((r for r in (queue if hopeless else reversed(queue)) if not is_pinned(r)), None)
            if region is not None:
                last = self._known[region].last
                yield 0.0 if hopeless else entry.priority(bucket, now - last), last, region


def _draw(region: int) -> float:
    """A number in [0, 1) that is always the same for a region, and as if drawn at random (Fibonacci hashing)."""
    return (region * 0x9E3779B97F4A7C15 % 2**64 >> 11) / 2.0**53
