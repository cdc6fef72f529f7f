"""Access-counter-based migration."""

from __future__ import annotations

from tidegate import units
from tidegate.options import Option
from tidegate.policies.interface.policy import PlacementPolicy
from tidegate.policies.interface.visibility import Samples
from tidegate.policies.registries import placement


@placement("acbm")
class ACBM(PlacementPolicy):
    """Map evicted regions remotely and bring data home when their counter says that they are hot
    (ObservUVM, II-B).

    Granules of one region, a threshold of 256 accesses, 256 counters: the driver's defaults
    (uvm_gpu_access_counters.c). What was never evicted still migrates by faults. A hot granule
    comes home whole.
    """

    sees = Samples()
    threshold = Option(256, "accesses over the link before a granule migrates", least=1, most=65535)
    granularity = Option(
        "region",
        "what one counter counts for, and what migrates",
        choices=("region", "64KiB", "2MiB", "16MiB", "1GiB"),
    )

    def start(self) -> None:
        geometry = self.memory.geometry
        self.last = self.memory.regions * geometry.pages_per_region
        if self.granularity == "region":
            self.granule = geometry.pages_per_region
            self.memory.count_remote(self.threshold)
        else:
            self.granule = min(self.last, max(1, units.size(self.granularity) // geometry.page))
            self.memory.count_remote(self.threshold, self.granule)

    def on_eviction(self, region: int) -> None:
        pages = self.memory.geometry.pages_per_region
        self.memory.advise(region * pages, pages, "far")

    def on_notification(self, granule: int) -> None:
        first = granule * self.granule
        pages = min(self.granule, self.last - first)
        self.memory.advise(first, pages, None)
        self.memory.prefetch(first, pages)
