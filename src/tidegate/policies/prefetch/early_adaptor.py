"""EarlyAdaptor: our stand-in for an algorithm of which we know the outline."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.policies.interface.policy import Decision, PrefetchPolicy
from tidegate.policies.registries import prefetch
from tidegate.policies.structures.column import Marks

_SHY, _BOLD = 51, 1  # thresholds of the tree


@prefetch("early-adaptor")
class EarlyAdaptor(PrefetchPolicy):
    """Set the tree's threshold by page faults alone. A stand-in: of Go et al. (ISPASS'23) we found
    the abstract, which gives no numbers.

    Known about it: it counts faults per 2 MB block and in all, because prefetching pays where a
    block faults often and does harm where many blocks keep faulting; it does not change eviction,
    and prefetches too much where locality is poor (its abstract; ObservUVM, VII-B). Our rule: if,
    over ``window`` faulting regions, many fault again soon, the tree prefetched too little, and
    whole regions are taken from then on.
    """

    window = Option(256, "faulting regions per decision", least=1, counts_regions=True)
    again = Option(0.25, "share of repeated regions above which it is bold", least=0, most=1)

    def start(self) -> None:
        self._seen = Marks()
        self._repeated = self._total = self._windows = 0
        self.threshold = _SHY
        self.memory.set_prefetch_threshold(_SHY)

    def on_fault(self, region: int) -> None:
        self._repeated += region in self._seen
        self._seen.add(region)
        self._total += 1
        if self._total == self.window:
            self.threshold = _BOLD if self._repeated > self.again * self.window else _SHY
            self.memory.set_prefetch_threshold(self.threshold)
            self._windows += 1
            self._seen.clear()
            self._repeated = self._total = 0

    def decisions(self) -> list[Decision]:
        return [Decision(f"threshold {self.threshold}", f"{self._windows:,} windows of faults")]
