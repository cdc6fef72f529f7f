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

    A counter counts for a region, the threshold is 256 accesses, and there are 256 counters: the
    driver's defaults (uvm_gpu_access_counters.c). What was never evicted still migrates by faults.

    A hot granule comes home whole: "the driver triggers the migration of the region". The driver's
    source has the other reading, ``home=accessed``: an entry of the counters' buffer names the
    parts of 64 KB that had some of the accesses (``sub_granularity``), only these migrate, with no
    prefetch beside them (``expand_notification_block``), and the rest stays remote until it has
    been counted in turn.
    """

    sees = Samples()
    threshold = Option(256, "accesses over the link before a granule migrates", least=1, most=65535)
    granularity = Option(
        "region",
        "what one counter counts for",
        choices=("region", "64KiB", "2MiB", "16MiB", "1GiB"),
    )
    home = Option(
        "granule",
        "what migrates: all of it, or the pages accessed",
        choices=("granule", "accessed"),
    )

    def start(self) -> None:
        geometry = self.memory.geometry
        self.last = self.memory.regions * geometry.pages_per_region
        granule = geometry.pages_per_region
        if self.granularity != "region":
            granule = min(self.last, max(1, units.size(self.granularity) // geometry.page))
        self.pages = granule if self.home == "granule" else 1  # that a notification is about
        by = 0 if self.granularity == "region" else granule
        self.memory.count_remote(self.threshold, by, self.home == "accessed")

    def on_eviction(self, region: int) -> None:
        pages = self.memory.geometry.pages_per_region
        self.memory.advise(region * pages, pages, "far")

    def on_notification(self, which: int) -> None:
        first = which * self.pages
        pages = min(self.pages, self.last - first)
        self.memory.advise(first, pages, None)
        self.memory.prefetch(first, pages)
