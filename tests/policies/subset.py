"""Policies in the subset of Python that is compiled: between them they use all of it."""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import islice
from typing import Any

from tidegate.policy import (
    Column,
    Draws,
    Everything,
    EvictionPolicy,
    Heap,
    Marks,
    Option,
    Order,
    Orders,
    PrefetchPolicy,
    Samples,
    first,
)

LIMIT = 3


def twice(number):
    return 2 * number


def halves(number):
    while number > 1:
        yield number
        number //= 2


class Base(EvictionPolicy):
    def on_fault(self, region):
        self.order.move_to_tail(region)

    def on_eviction(self, region):
        self.order.remove(region)

    def victim(self):
        return self.order.head

    def finished(self):
        assert set(self.order) == self.resident


class Constant(Base):
    """It depends on a constant of the module."""

    def victim(self):
        return next(islice(self.order, LIMIT, None), self.order.head)


class Expressions(Base):
    """Comprehensions, generators, reductions, helpers, properties, private names, super."""

    ahead = 2
    share = Option(0.5, "a fraction", least=0, most=1)

    def start(self):
        self.__rounds = 0
        self.total = 0.0
        self.flag = False

    @property
    def few(self):
        return self.__rounds % 3 + 1

    @staticmethod
    def half(number):
        return number // 2

    def on_fault(self, region):
        self.__rounds += 1
        self.flag = not self.flag and region > 1
        super().on_fault(region)

    def victim(self):
        self.total += sum(r % 3 for r in self.order) / 7 + math.sqrt(self.few)
        free = [r for r in self.order if not self.memory.is_served(r)]
        if len(free) > 2 and any(r % 2 == 0 for r in islice(self.order, 5)):
            return max(r for r in free[:3])
        if all(r > 3 for r in self.order) and self.flag:
            return min(islice(self.order, self.ahead, 2 * self.ahead + 1))
        back = (r for r in reversed(self.order) if not self.memory.is_served(r))
        candidate = next(back, self.order.head)
        if sum(halves(twice(self.__rounds) % 64)) % LIMIT == 0:
            candidate = next(back, candidate)
        place = self.half(int(self.share * len(self.order)))
        return next(islice(self.order, place, None), candidate) if self.few == 2 else candidate

    def report(self):
        return {"total": self.total, "flag": self.flag}


class Structures(Base):
    """Every structure, and all that can be done with it."""

    sees = Samples(regions=100)
    bins = Option(3, "orders", least=1)

    def start(self):
        self.older, self.bin = Orders(self.bins), Column(-1)
        self.marked, self.once = Marks(), Marks()
        self.heat, self.draws = Column(0.25), Draws(3)
        self.counts, self.weights = [0] * 4, [0.5, 1.5]
        self.edges = [2, 4, 8]
        self.spare = Order()
        self.known = Heap()

    def on_fault(self, region):
        super().on_fault(region)
        if self.bin[region] < 0:
            self.bin[region] = self.draws.below(self.bins)
            self.older[self.bin[region]].move_to_head(region)
        self.known[region] = self.known[region] + 3 if region in self.known else region
        self.heat[region] = self.heat[region] * 0.5 + self.weights[-1]
        self.weights[0] += self.heat[region]
        self.counts[bisect_right(self.edges, region % 10)] += 1
        self.spare.move_to_head(region)

    def on_notification(self, region):
        self.marked.add(region)
        self.once.add(region)

    def on_eviction(self, region):
        super().on_eviction(region)
        self.older[self.bin[region]].remove(region)
        self.known.remove(region)
        self.bin[region] = -1
        self.marked.discard(region)
        if region in self.once:
            self.once.remove(region)
        if len(self.once) > 3:
            self.once.clear()
        if region in self.spare and len(self.spare) > 5:
            self.spare.remove(region)

    def victim(self):
        if not self.marked and self.known:
            return self.known.lowest
        for i in range(len(self.older)):
            order = self.older[i]
            if order and order.tail not in self.marked:
                return order.tail
        return self.order.tail if len(self.known) > 6 else self.order.head

    def observe(self):
        region = first(self.spare, unless=self.observed)
        if region is None or not self.memory.is_resident(region):
            return first(self.order, unless=self.observed)
        return region

    def report(self):
        return {
            "counts": self.counts,
            "weights": self.weights,
            "heat": sorted(self.heat.items()),
            "marks": (sorted(self.marked), sorted(self.once)),
            "orders": [list(o) for o in self.older] + [list(self.spare)],
            "heap": (sorted(self.known.items()), self.draws.below(1000)),
        }


class Touches(Base):
    """What memory shows to those who see everything."""

    sees = Everything(future=True)

    def victim(self):
        best, least = -1, 0
        for region in sorted(self.resident):
            worth = self.memory.now - self.memory.last_touch(region)
            worth += self.memory.touch_count(region) + self.memory.next_touch(region) % 1000
            if best < 0 or worth > least:
                best, least = region, worth
        assert best >= 0, "memory is full"
        return best if len(self.resident) > 1 else self.order.head


class Verbs(PrefetchPolicy):
    """Requests of all kinds, and pages that faulted."""

    sees = Samples(regions=100)

    def start(self):
        self.pages = self.memory.geometry.pages_per_region
        self.faults = 0

    def on_fault(self, region):
        for page in self.memory.faulted(region):
            self.faults += 1
            if page % 2 == 0 and page + 1 < self.pages:
                self.memory.prefetch(region * self.pages + page + 1)
        self.memory.set_prefetch_threshold(30 + len(self.memory.faulted(region)))

    def on_prefetch(self, region):
        if region not in self.memory.observed:
            self.memory.observe_prefetched(region)

    def on_eviction(self, region):
        other = region - 1 if region else self.memory.regions - 1
        if self.memory.is_resident(other) and not self.memory.is_served(other) and region % 5 == 0:
            self.memory.evict(other)
        if region % 7 == 0:
            self.memory.advise(region * self.pages, 1, "far")
        elif region % 7 == 1:
            self.memory.advise(0, self.memory.regions * self.pages, None)

    def on_launch(self, launch):
        self.faults += 1000 * launch

    def report(self) -> dict[str, Any]:
        return {"faults": self.faults}
