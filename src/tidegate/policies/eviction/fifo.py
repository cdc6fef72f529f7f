"""First in, first out."""

from __future__ import annotations

from tidegate.compiled.jit import jit_policy
from tidegate.policies.interface.events import EVENT_BITS, EVICTION, VICTIM
from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.interface.twin import Twin, append, contains, head, links, list_words, remove
from tidegate.policies.registries import eviction


@jit_policy
def _fifo(own: int, event: int) -> int:
    order = links(own)
    if event == VICTIM:
        return head(order)
    region = event >> EVENT_BITS
    if event & 255 == EVICTION:
        remove(order, region)
    elif not contains(order, region):
        append(order, region)
    return 0


@eviction("fifo")
class FIFO(EvictionPolicy):
    """Evict the region that got its frame longest ago; later faults in it do not matter (Belady
    1966).
    """

    compiled = Twin(_fifo, list_words)

    def on_fault(self, region: int) -> None:
        if region not in self.order:
            self.order.move_to_tail(region)

    def on_eviction(self, region: int) -> None:
        self.order.remove(region)

    def victim(self) -> int:
        return self.order.head

    def finished(self) -> None:
        assert set(self.order) == self.resident
