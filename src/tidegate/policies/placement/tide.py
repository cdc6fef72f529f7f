"""Tide's placement: rent or buy."""

from __future__ import annotations

from bisect import bisect_right

from tidegate.options import Option
from tidegate.policies.interface.policy import Decision, PlacementPolicy
from tidegate.policies.interface.visibility import Samples
from tidegate.policies.registries import placement
from tidegate.policies.structures.column import Column

ACCESS = 128  # bytes: what a counter counts as one access


@placement("tide")
class RentOrBuy(PlacementPolicy):
    """Use a region over the link until that has cost a price; then bring it near.

    A region is first mapped remotely; accesses over the link are its rent, and when they have cost
    a share of what a purchase costs on this machine, the region is fetched, whole, beside the
    kernels (ski rental; Karlin et al. 1990). While frames are free a purchase evicts nothing and is
    cheaper. What leaves is rented again, and for a region that stayed less than ``earned`` times as
    long as its rent took the price becomes ``dearer`` times as high: so a loop larger than memory
    comes to rest, part of it near, the rest used over the link. Objects without host data are born
    near, as nothing of them would cross the link. Far memory is not cached, so regions that many
    thread blocks share cost more than their migration before the driver hears of them: an object
    whose counters say so comes by faults instead, as under the driver. Of its regions that leave,
    one in ``probe`` is rented, to see whether that is still so. If everything fits, nothing is
    advised.
    """

    sees = Samples()
    # 1/4: the driver would have brought the region at once, so this is what can be lost against it
    price = Option(0.25, "purchases that a region's rent must amount to at first", least=0.0)
    # 4: then the second price is ski rental's, a whole purchase: at most twice the least is paid
    dearer = Option(4, "times the price of a region that did not earn its own", least=1)
    # 2: one use says nothing of another, and a region of one page has no more in a pass
    uses = Option(2, "pages' worth of accesses before a region is bought", least=1)
    # 4: a migration and the write-back of what leaves cost about three rents of a region
    earned = Option(4.0, "times as long as it was rented, that a region must stay", least=0.0)
    # 64, 16 purchases: a region that always leaves too early costs a sixteenth more than its rent
    most = Option(64, "times the first price at most", least=1)
    # 2: one region may be an exception, and each costs as much as several migrations
    least = Option(2, "notifications before an object is judged", least=1)
    # 8: a launch that uses an object otherwise is noticed after as many regions
    latest = Option(8, "notifications of an object that its mean rent is taken over", least=1)
    # 16: as prefetches are watched; a wrong judgement is found at a sixteenth of its cost
    probe = Option(16, "one evicted region of a shared object in so many is rented", least=1)

    def start(self) -> None:
        geometry, costs = self.memory.geometry, self.memory.costs
        self._pages = geometry.pages_per_region
        self._starts = [o.first_page for o in self.memory.objects]
        self._sizes = [o.pages for o in self.memory.objects]
        self._born = [int(o.host == ()) for o in self.memory.objects]
        self._page = max(1, geometry.page // ACCESS)  # accesses of a page
        # Accesses that cost as much as fetching a region, with the way back of another once memory
        # is full, and as much as its migration by a fault and its own way back. Where costs are not
        # known, a region is bought when all of it was used, and nothing is taken to be shared.
        self._fetch, self._swap, self._purchase = (
            float(self._pages),
            float(self._pages),
            float("inf"),
        )
        if costs is not None:
            self._fetch = costs.fetch / costs.remote
            self._swap = (costs.fetch + costs.send) / costs.remote
            self._purchase = (costs.fault + costs.bring + costs.send) / costs.remote
        self._rent = [0.0] * len(self._starts)  # by object: mean accesses when they were noticed
        self._noticed = [0] * len(self._starts)  # and how often
        self._shared = [0] * len(self._starts)  # 1: comes by faults
        self._clock = 0  # counts rent: pages' worth of accesses to all regions
        self._rented = Column(0)  # by region: its rent since it left
        self._price = Column(1)  # by region: times the first price
        self._since = Column(0)  # by region: when it left, or came
        self._took = Column(0)  # by region: how long it was rented before it came
        self._evictions = self._bought = self._left = 0
        self._fits = self.memory.regions <= self.memory.frames
        if not self._fits:
            # A use of a whole page ends a count, so that no counter is left with a part of one.
            self.memory.count_remote(self._page)

    def on_launch(self, launch: int) -> None:
        if launch == 0 and not self._fits:
            for i in range(len(self._starts)):
                if not self._born[i]:
                    self.memory.advise(self._starts[i], self._sizes[i], "far")

    def on_notification(self, region: int) -> None:
        rent = max(1, self.memory.accesses // self._page)
        self._clock += rent
        self._rented[region] += rent
        if self._rented[region] >= self._price[region] * self._first_price():
            self._took[region] = self._clock - self._since[region]
            self._since[region] = self._clock
            self._bought += 1
            self.memory.advise(region * self._pages, self._pages, None)
            self.memory.prefetch_async(region * self._pages, self._pages)
        self._judge(self._object(region))

    def on_eviction(self, region: int) -> None:
        self._evictions += 1
        stayed = self._clock - self._since[region]
        dearer = min(self.most, self.dearer * self._price[region])
        self._price[region] = 1 if stayed >= self.earned * self._took[region] else dearer
        self._since[region] = self._clock
        self._rented[region] = self._took[region] = 0
        shared = self._shared[self._object(region)]
        self._left += shared
        if shared == 0 or self._left % self.probe == 0:
            self.memory.advise(region * self._pages, self._pages, "far")

    def report(self) -> dict[str, object]:
        return {"bought": self._bought, "shared objects": sum(self._shared)}

    def decisions(self) -> list[Decision]:
        after = f"{self._evictions:,} evictions"
        named = zip(self.memory.objects, self._shared, strict=True)
        shared = " ".join(o.name for o, is_shared in named if is_shared)
        found = [Decision(f"brought {self._bought:,} regions near", after)]
        return [*found, Decision(f"shared, by faults: {shared}", after)] if shared else found

    def _object(self, region: int) -> int:
        return max(0, bisect_right(self._starts, region * self._pages) - 1)

    def _first_price(self) -> float:
        """Return the pages' worth of accesses for which a region is bought that never left."""
        return max(self.uses, self.price * (self._swap if self._evictions else self._fetch))

    def _judge(self, here: int) -> None:
        """Note the rent that was due when it was noticed, and whether its mean is above the cost of
        a purchase: then let the object's regions come by faults.
        """
        self._noticed[here] += 1
        weight = min(self.latest, self._noticed[here])
        self._rent[here] += (self.memory.accesses / self._page - self._rent[here]) / weight
        shared = 1 if self._rent[here] > self._purchase else 0
        if self._noticed[here] < self.least or shared == self._shared[here]:
            return
        self._shared[here] = shared
        if shared:  # one that is no longer shared rents what leaves from now on
            self.memory.advise(self._starts[here], self._sizes[here], None)
