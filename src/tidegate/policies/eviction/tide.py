"""Tide's eviction: the region that promises the fewest uses, learnt from samples."""

from __future__ import annotations

from bisect import bisect_right
from math import inf

from tidegate.options import Option
from tidegate.policies.interface.policy import Decision, EvictionPolicy
from tidegate.policies.interface.visibility import Samples
from tidegate.policies.registries import eviction
from tidegate.policies.structures.column import Column
from tidegate.policies.structures.draws import Draws
from tidegate.policies.structures.order import Order, Orders

_NONE = -1
# The least interval of each bucket: 1, 2, 3, 4, 6, 8, 12, … known uses. Two to a doubling, as leu
# has them; the last is longer than any run remembers.
EDGES = [1, *sorted({int(2**k * part) for k in range(1, 20) for part in (1, 1.5)})]
BUCKETS = len(EDGES)
MOST_OBJECTS = 64  # with statistics of their own, others share them: the papers' have up to 20


@eviction("tide")
class Tide(EvictionPolicy):
    """Evict the region that promises the fewest uses for the time it would stay.

    For each object the intervals between known uses of its regions are counted, and from their
    distribution follows what a region of some age promises: the chance of a use within the best
    lease, over its length (LEU; Chen et al., MEMSYS'19). An interval counts when it has ended, by a
    use or by an eviction: uses that are still open would make everything new look useless. A
    region that nobody observes may be in use, so it promises ``doubt`` times as much as one that is
    observed and was not used. Observation saves arrivals, so each arrival pays for some of it.
    Statistics are halved from time to time, so that phases
    are forgotten. The lowest promise is looked for among a few random regions, the oldest and the
    youngest of their objects and the best of earlier searches, so that a victim costs the same in
    any memory.
    """

    sees = Samples(regions=100)
    in_driver = False
    # 16: on what it was developed on 1.297 of Belady, 1.295 with 32 at twice the time, 1.334 with 8
    draws = Option(16, "random candidates for a victim", least=1, most=1024)
    # 2: on what it was developed on, 1.38 of Belady without doubt, 1.32 with 2, and with 4
    doubt = Option(2.0, "times the promise of a region that is not observed", least=1, most=1024)
    # 1/2: so what observation takes is paid for if it spares one arrival in three
    share = Option(0.5, "of the time that arrivals take, which observation may take", least=0.0)
    # 256: leu-observed, developed half: 64 forgets too much (1.43), 256 is as good as never (1.41)
    forget = Option(256, "intervals of an object after which all count half", least=2)
    # 8: ages that differ by less than an eighth are alike, and of these the oldest leaves; the very
    # youngest may still be in use
    fine = Option(8, "steps in which an age is told from its double", least=1, most=1 << 20)
    seed = Option(0, "of the random numbers", least=0)

    def start(self) -> None:
        pages = self.memory.geometry.pages_per_region
        self._first = sorted(o.first_page // pages for o in self.memory.objects) or [0]
        objects = min(len(self._first), MOST_OBJECTS)
        self._edges = list(EDGES)
        self._counts = [0] * (objects * BUCKETS)  # intervals that ended in a use, by bucket
        self._ended = [0] * objects  # intervals that ended, in a use or an eviction
        self._due = [0] * objects  # how many of them, when promises are computed again
        self._chance = [0.0] * (objects * BUCKETS)  # of a use within the best lease, by age
        self._lease = [0] * (objects * BUCKETS)  # its end
        self._clock = 0  # counts known uses
        # Observations that an arrival, with the eviction that it leads to, pays for: as many as one
        # likes where they cost nothing. Live memory, where costs are not known, limits them itself.
        costs, self._pays, self._left = self.memory.costs, inf, 0.0
        if costs is not None and costs.observation > 0:
            arrival = costs.fault + costs.bring + costs.send
            self._pays = self.share * arrival / costs.observation
        self._last = Column(0)  # by region: time of its last known use; 0: never used
        self._orders = Orders(objects)  # resident regions of each object, by last known use
        self._draws = Draws(self.seed)
        self._seats = [_NONE] * self.draws  # candidates kept from earlier searches
        self._searches = 0
        self._searched = [0] * objects  # the latest search that looked at an object's ends
        self._end_of = [_NONE] * objects  # the better victim of these ends
        self._end_score = [inf] * objects  # and what it promises
        self._of = Column(0)  # by region: its object; set when it comes
        self._count = 0  # resident regions
        self._regions = Column(_NONE)  # at each place, from 0 to ``_count`` - 1
        self._place = Column(_NONE)  # of each resident region

    def on_fault(self, region: int) -> None:
        stayed = self._place[region] != _NONE
        if not stayed:
            self._place[region] = self._count
            self._regions[self._count] = region
            self._count += 1
            self._left += self._pays
            self._of[region] = self._object(region)
        self._used(region, stayed)

    def on_notification(self, region: int) -> None:
        self._used(region, True)

    def on_eviction(self, region: int) -> None:
        self._count -= 1
        last, hole = self._regions[self._count], self._place[region]
        self._regions[hole], self._place[last] = last, hole
        self._place[region] = _NONE
        here = self._of[region]
        self._orders[here].remove(region)
        self._end(here)

    def victim(self) -> int:
        found = self._lowest(False)
        return found if found != _NONE else self._regions[0]

    def observe(self) -> int | None:
        found = self._lowest(True) if self._left >= 1 else _NONE
        if found == _NONE:
            return None
        self._left -= 1
        return found

    def decisions(self) -> list[Decision]:
        named = zip(self.memory.objects, self._ended, strict=False)
        known = " ".join(f"{o.name} {n}" for o, n in named if n)
        return [Decision(f"intervals counted: {known or 'none'}", f"{self._clock:,} known uses")]

    def finished(self) -> None:
        assert {self._regions[place] for place in range(self._count)} == self.resident
        assert sum(len(order) for order in self._orders) == self._count

    # What is learnt

    def _object(self, region: int) -> int:
        return max(0, bisect_right(self._first, region) - 1) % len(self._orders)

    def _used(self, region: int, stayed: bool) -> None:
        """Note a known use, and the interval that it ends; an eviction may have ended it before."""
        self._clock += 1
        here = self._of[region]
        if self._last[region]:
            bucket = bisect_right(self._edges, self._clock - self._last[region]) - 1
            self._counts[here * BUCKETS + bucket] += 1
            if stayed:
                self._end(here)
        self._last[region] = self._clock
        self._orders[here].move_to_tail(region)

    def _end(self, here: int) -> None:
        """Count the end of an interval; when many are known, let all of them count half."""
        self._ended[here] += 1
        if self._ended[here] >= self.forget:
            self._ended[here] //= 2
            for i in range(here * BUCKETS, (here + 1) * BUCKETS):
                self._counts[i] //= 2
            self._due[here] = 0

    def _refresh(self, here: int) -> None:
        """Compute, for each age, the lease with the most uses per time and the chance of one; again
        when an eighth more is known.
        """
        first, passed = here * BUCKETS, 0
        for age in range(BUCKETS):
            best, chance, lease, within = 0.0, 0.0, 0, 0
            left = max(1, self._ended[here] - passed)
            for bucket in range(age, BUCKETS - 1):
                if self._counts[first + bucket]:
                    within += self._counts[first + bucket]
                    rate = within / (self._edges[bucket + 1] - self._edges[age])
                    if rate > best:
                        best, chance, lease = rate, within / left, self._edges[bucket + 1]
            self._chance[first + age], self._lease[first + age] = chance, lease
            passed += self._counts[first + age]
        self._due[here] = self._ended[here] + 1 + self._ended[here] // 8

    def _promise(self, region: int) -> float:
        """Return the uses that a region promises per time; below 0 where none is expected, the
        lower the older.
        """
        here = self._of[region]
        if self._ended[here] >= self._due[here]:
            self._refresh(here)
        age = self._clock - self._last[region] + 1
        age -= age % max(1, age // self.fine)
        at = here * BUCKETS + bisect_right(self._edges, age + 1) - 1
        chance, doubt = self._chance[at], 1.0 if region in self.observed else self.doubt
        return chance * doubt / (self._lease[at] - 1 - age) if chance > 0 else -age / doubt

    # Who is chosen

    def _lowest(self, unobserved: bool) -> int:
        """Return the region of the lowest promise, of all if they are few, or else of those drawn,
        the youngest and oldest of their objects, and those kept from earlier searches.
        """
        best, least = _NONE, inf
        if self._count <= 2 * self.draws:
            for i in range(self._count):
                region = self._regions[i]
                score = self._score(region, unobserved)
                if self._is_lower(region, score, best, least):
                    best, least = region, score
            return best
        self._searches += 1
        for seat in range(self.draws):
            found = self._seats[seat]
            score = self._score(found, unobserved)
            drawn = self._regions[self._draws.below(self._count)]
            promised = self._score(drawn, unobserved)
            if self._is_lower(drawn, promised, found, score):
                found, score = drawn, promised
            here = self._of[drawn]
            self._look_at_ends(here, unobserved)
            if self._is_lower(self._end_of[here], self._end_score[here], found, score):
                found, score = self._end_of[here], self._end_score[here]
            self._seats[seat] = found
            if self._is_lower(found, score, best, least):
                best, least = found, score
        return best

    def _look_at_ends(self, here: int, unobserved: bool) -> None:
        """Find the better victim of an object's oldest and youngest region, once in a search."""
        if self._searched[here] == self._searches:
            return
        self._searched[here] = self._searches
        old, young = self._orders[here].head, self._youngest(self._orders[here])
        aged, fresh = self._score(old, unobserved), self._score(young, unobserved)
        is_young = self._is_lower(young, fresh, old, aged)
        self._end_of[here], self._end_score[here] = (young, fresh) if is_young else (old, aged)

    def _youngest(self, order: Order) -> int:
        """Return the youngest region that was not served in this turn."""
        return next((r for r in reversed(order) if not self.memory.is_served(r)), order.head)

    def _is_lower(self, one: int, score: float, other: int, than: float) -> bool:
        """Return whether one region is the better victim, by scores; of equals it is the older."""
        return score < than or (score == than < inf and self._last[one] < self._last[other])

    def _score(self, region: int, unobserved: bool) -> float:
        """Return what a region promises; inf if it is not resident, in use now, or observed where
        that matters.
        """
        if region == _NONE or self._place[region] == _NONE or self.memory.is_served(region):
            return inf
        return inf if unobserved and region in self.observed else self._promise(region)
