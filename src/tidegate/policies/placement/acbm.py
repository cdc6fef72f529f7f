"""Access-counter-based migration."""

from __future__ import annotations

from tidegate.compiled.jit import jit_policy
from tidegate.options import Option
from tidegate.policies.interface.events import ASK_ADVISE, ASK_PREFETCH, EVENT_BITS, EVICTION
from tidegate.policies.interface.header import OWN, PAGES_PER_REGION
from tidegate.policies.interface.policy import PlacementPolicy
from tidegate.policies.interface.twin import Twin, ask, words_at
from tidegate.policies.interface.visibility import Samples
from tidegate.policies.registries import placement


@jit_policy
def _acbm(own: int, event: int) -> int:
    pages = words_at(own, OWN)[PAGES_PER_REGION]
    first, leaves = (event >> EVENT_BITS) * pages, event & 255 == EVICTION
    ask(own, ASK_ADVISE, first, pages, 1 if leaves else 0)
    if not leaves:
        ask(own, ASK_PREFETCH, first, pages)
    return 0


@placement("acbm")
class ACBM(PlacementPolicy):
    """Map evicted regions remotely and bring one home when its counter says that it is hot
    (ObservUVM, II-B).

    Regions of 2 MB, a threshold of 256 accesses, 256 counters: the driver's defaults
    (uvm_gpu_access_counters.c). What was never evicted still migrates by faults.
    """

    sees = Samples()
    compiled = Twin(_acbm)
    threshold = Option(256, "accesses over the link before a region migrates", least=1, most=65535)

    def start(self) -> None:
        self.memory.count_remote(self.threshold)

    def on_eviction(self, region: int) -> None:
        self.memory.advise(*self._pages(region), "far")

    def on_notification(self, region: int) -> None:
        self.memory.advise(*self._pages(region), None)
        self.memory.prefetch(*self._pages(region))

    def _pages(self, region: int) -> tuple[int, int]:
        pages = self.memory.geometry.pages_per_region
        return region * pages, pages
