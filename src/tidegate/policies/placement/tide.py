"""Tide's placement: rent or buy."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.policies.interface.policy import Decision, PlacementPolicy
from tidegate.policies.interface.visibility import Samples
from tidegate.policies.registries import placement
from tidegate.policies.structures.column import Column

ACCESS = 128  # bytes: what a counter counts as one access


@placement("tide")
class RentOrBuy(PlacementPolicy):
    """Use a region over the link until that has cost a price, then bring it near.

    A region is first mapped remotely, and every access over the link is rent, counted in pages.
    When the rent reaches its price, the region is brought near, whole (ski rental: whoever buys
    when the rent has reached the price never pays more than twice the least). What leaves is rented
    again. A region that stayed less than ``earned`` times as long as its rent took did not earn its
    price, which doubles for it: so a loop larger than memory comes to rest, part of it near, the
    rest used over the link. One that stayed longer starts from the first price again. If everything
    fits, nothing is advised.
    """

    sees = Samples()
    # 1 page: the least that a counter can tell. Less than a migration costs (one to three regions),
    # because hardware has few counters and regions without one pay unseen, and because a page that
    # many thread blocks share crosses once for each of them before the driver hears of it. What
    # was bought too soon becomes dearer
    price = Option(1, "pages' worth of accesses for which a region is brought near", least=1)
    # 4: a migration and the write-back of what leaves cost about three rents of a region
    earned = Option(4.0, "times as long as it was rented, that a region must stay", least=0.0)
    # 256 pages: a loop of regions of 32 pages then swaps each every eight laps
    most = Option(256, "times the first price at most", least=1)

    def start(self) -> None:
        geometry = self.memory.geometry
        self._pages = geometry.pages_per_region
        self._starts = [o.first_page for o in self.memory.objects]
        self._sizes = [o.pages for o in self.memory.objects]
        self._clock = 0  # counts rent: notifications of all regions
        self._rented = Column(0)  # by region: notifications since it left
        self._price = Column(1)  # by region: times the first price
        self._since = Column(0)  # by region: when it left, or came
        self._took = Column(0)  # by region: how long it was rented before it came
        self._evictions = self._bought = 0
        self._fits = self.memory.regions <= self.memory.frames
        if not self._fits:
            # A use of a whole page ends a count, so that no counter is left with a part of one.
            self.memory.count_remote(max(1, geometry.page // ACCESS))

    def on_launch(self, launch: int) -> None:
        if launch == 0 and not self._fits:
            for i in range(len(self._starts)):
                self.memory.advise(self._starts[i], self._sizes[i], "far")

    def on_notification(self, region: int) -> None:
        self._clock += 1
        self._rented[region] += 1
        if self._rented[region] >= self._price[region] * self.price:
            self._took[region] = self._clock - self._since[region]
            self._since[region] = self._clock
            self._bought += 1
            self.memory.advise(region * self._pages, self._pages, None)
            self.memory.prefetch(region * self._pages, self._pages)

    def on_eviction(self, region: int) -> None:
        self._evictions += 1
        stayed = self._clock - self._since[region]
        doubled = min(self.most, 2 * self._price[region])
        self._price[region] = 1 if stayed >= self.earned * self._took[region] else doubled
        self._since[region] = self._clock
        self._rented[region] = 0
        self.memory.advise(region * self._pages, self._pages, "far")

    def report(self) -> dict[str, object]:
        return {"bought": self._bought}

    def decisions(self) -> list[Decision]:
        return [
            Decision(f"brought {self._bought:,} regions near", f"{self._evictions:,} evictions")
        ]
