"""Least frequently used, by known uses."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.interface.visibility import Samples
from tidegate.policies.registries import eviction
from tidegate.policies.structures.column import Column
from tidegate.policies.structures.order import Order, Orders, first


@eviction("lfu")
class LFU(EvictionPolicy):
    """Evict from the lowest bin of a histogram of known uses; within a bin, the region whose last
    known use is oldest.

    A fault that gives a region its frame puts it at the tail of its bin; a further fault or a
    notification adds to its count and moves it to the tail, of the same bin or, where the count
    leaves the bin's range, of the next one. Regions of the lowest bin are observed (ObservUVM, VI-A
    and Figure 7b: "incremented and (possibly) moved to the next bin").

    The paper does not say how wide a bin is. The driver's tree fills a region that is read in order
    within 6 faults (1, 2, 3, 5, 9 and 17 pages are more than half of a subtree, or the first of
    it). A bin of 8 counts therefore holds what comes of filling a region once; with one count to a
    bin, bins would tell regions apart by how many batches filled them.

    Nor does it say whether counts outlive an eviction. The default keeps them: "the driver uses the
    fault stream to track the frequency of accesses" while a region is far, and the "HBM-resident
    regions in the lowest frequency bin" are observed, so bins hold others too.
    """

    sees = Samples(regions=100)
    in_driver = False
    bins = Option(64, "bins of the histogram; the last takes everything above", least=2)
    width = Option(8, "known uses that a bin ranges over", least=1)
    remember = Option(
        True, "keep a region's count when it is evicted (a reading the paper leaves open)"
    )
    fault_counts = Option(True, "a further fault counts as a use, not only notifications")

    def start(self) -> None:
        self._bins = Orders(self.bins)
        # known uses of each region, the fault that first gave it a frame included
        self._uses = Column(0)
        self._lowest = 0

    def on_fault(self, region: int) -> None:
        if region not in self._bin(region):  # it has just got its frame
            self._uses[region] += self.fault_counts if self._uses[region] else 1
            self._put(region)
        elif self.fault_counts:
            self._count_use(region)

    def on_notification(self, region: int) -> None:
        self._count_use(region)

    def on_eviction(self, region: int) -> None:
        self._bin(region).remove(region)
        if not self.remember:
            self._uses[region] = 0

    def victim(self) -> int:
        return self._first_bin().head

    def observe(self) -> int | None:
        return first(self._first_bin(), unless=self.observed)

    def finished(self) -> None:
        assert set().union(*self._bins) == self.resident
        assert sum(map(len, self._bins)) == len(self.resident)

    def _count_use(self, region: int) -> None:
        self._bin(region).remove(region)
        self._uses[region] += 1
        self._put(region)

    def _put(self, region: int) -> None:
        self._bin(region).move_to_tail(region)
        self._lowest = min(self._lowest, self._place(region))

    def _bin(self, region: int) -> Order:
        return self._bins[self._place(region)]

    def _place(self, region: int) -> int:
        return min(max(0, self._uses[region] - 1) // self.width, self.bins - 1)

    def _first_bin(self) -> Order:
        while not self._bins[self._lowest] and self._lowest < self.bins - 1:
            self._lowest += 1
        return self._bins[self._lowest]
