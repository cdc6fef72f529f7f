"""Access-counter-based migration."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.policies.interface.policy import PlacementPolicy
from tidegate.policies.interface.visibility import Samples
from tidegate.policies.registries import placement


@placement("acbm")
class ACBM(PlacementPolicy):
    """Map evicted regions remotely and bring one home when its counter says that it is hot
    (ObservUVM, II-B).

    Regions of 2 MB, a threshold of 256 accesses, 256 counters: the driver's defaults
    (uvm_gpu_access_counters.c). What was never evicted still migrates by faults.
    """

    sees = Samples()
    threshold = Option(256, "accesses over the link before a region migrates", least=1, most=65535)

    def start(self) -> None:
        self.memory.count_remote(self.threshold)

    def on_eviction(self, region: int) -> None:
        first, pages = self._pages(region)
        self.memory.advise(first, pages, "far")

    def on_notification(self, region: int) -> None:
        first, pages = self._pages(region)
        self.memory.advise(first, pages, None)
        self.memory.prefetch(first, pages)

    def _pages(self, region: int) -> tuple[int, int]:
        pages = self.memory.geometry.pages_per_region
        return region * pages, pages
