"""Least frequently used, as far as observation tells."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.interface.visibility import Samples
from tidegate.policies.registries import eviction
from tidegate.policies.structures.order import Order, first
from tidegate.policies.twins.lfu import LFU_TWIN


@eviction("lfu")
class LFU(EvictionPolicy):
    """Evict from the lowest bin of a histogram of known uses; within a bin, the region whose last
    known use is oldest.

    A fault that gives a region its frame puts it at the tail of the lowest bin; a further fault or
    a notification moves it to the tail of the next one. Regions of the lowest bin are observed
    (ObservUVM, VI-A and Figure 7b).

    The paper does not say whether counts outlive an eviction. The default remembers them: "the
    driver uses the fault stream to track the frequency of accesses" while a region is far, and
    observed are the "HBM-resident regions in the lowest frequency bin", so that bins know of others
    too.
    """

    sees = Samples(regions=100)
    in_driver = False
    compiled = LFU_TWIN
    bins = Option(64, "bins of the histogram; the last takes everything above", least=2)
    remember = Option(
        True, "keep a region's count when it is evicted (a reading the paper leaves open)"
    )
    fault_counts = Option(True, "a further fault counts as a use, not only notifications")

    def start(self) -> None:
        self._bins = [Order() for _ in range(self.bins)]
        self._count: dict[int, int] = {}  # known uses
        self._bin: dict[int, int] = {}  # of each resident region
        self._lowest = 0

    def on_fault(self, region: int) -> None:
        if region not in self._bin:  # it has just got its frame
            known = self._count.get(region)
            self._count[region] = 0 if known is None else known + self.fault_counts
            self._put(region, self._count[region])
        elif self.fault_counts:
            self._use(region)

    def on_notification(self, region: int) -> None:
        self._use(region)

    def on_eviction(self, region: int) -> None:
        self._bins[self._bin.pop(region)].remove(region)
        if not self.remember:
            del self._count[region]

    def victim(self) -> int:
        return self._first_bin().head

    def observe(self) -> int | None:
        return first(self._first_bin(), unless=self.observed)

    def finished(self) -> None:
        assert set(self._bin) == self.resident
        assert sum(map(len, self._bins)) == len(self._bin)

    def _use(self, region: int) -> None:
        self._bins[self._bin[region]].remove(region)
        self._count[region] += 1
        self._put(region, self._count[region])

    def _put(self, region: int, count: int) -> None:
        place = min(count, self.bins - 1)
        self._bin[region] = place
        self._bins[place].move_to_tail(region)
        self._lowest = min(self._lowest, place)

    def _first_bin(self) -> Order:
        while not self._bins[self._lowest] and self._lowest < self.bins - 1:
            self._lowest += 1
        return self._bins[self._lowest]
