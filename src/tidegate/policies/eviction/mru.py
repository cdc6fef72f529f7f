"""Most recently used first."""

from __future__ import annotations

from tidegate.compiled.jit import jit_policy
from tidegate.policies.interface.events import EVENT_BITS, EVICTION, VICTIM
from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.interface.twin import (
    Twin,
    append,
    before,
    is_served,
    links,
    list_words,
    remove,
    tail,
)
from tidegate.policies.registries import eviction


@jit_policy
def _mru(own: int, event: int) -> int:
    order = links(own)
    if event == VICTIM:
        region = tail(order)
        while region >= 0 and is_served(own, region):
            region = before(order, region)
        return region if region >= 0 else tail(order)
    region = event >> EVENT_BITS
    remove(order, region)
    if event & 255 != EVICTION:
        append(order, region)
    return 0


@eviction("mru")
class MRU(EvictionPolicy):
    """Evict the region into which pages were migrated last: best for loops larger than memory
    (Denning 1968).

    Known uses are faults alone, so this is the mirror image of LRM. Regions of the batch being
    served are passed over, because their pages are still on the way.
    """

    compiled = Twin(_mru, list_words)

    def on_fault(self, region: int) -> None:
        self.order.move_to_tail(region)

    def on_eviction(self, region: int) -> None:
        self.order.remove(region)

    def victim(self) -> int:
        return next(
            (r for r in reversed(self.order) if not self.memory.is_served(r)), self.order.tail
        )

    def finished(self) -> None:
        assert set(self.order) == self.resident
