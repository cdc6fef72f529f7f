"""Least recently used, as far as observation tells."""

from __future__ import annotations

from tidegate.compiled.jit import jit_policy
from tidegate.policies.interface.events import EVENT_BITS, EVICTION, OBSERVE, VICTIM
from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.interface.twin import (
    Twin,
    append,
    first_unobserved,
    head,
    links,
    list_words,
    remove,
)
from tidegate.policies.interface.visibility import Samples
from tidegate.policies.registries import eviction
from tidegate.policies.structures.order import first


@jit_policy
def _lru(own: int, event: int) -> int:
    order = links(own)
    if event == VICTIM:
        return head(order)
    if event == OBSERVE:
        return first_unobserved(own, order, order.size)
    region = event >> EVENT_BITS
    remove(order, region)
    if event & 255 != EVICTION:
        append(order, region)
    return 0


@eviction("lru")
class LRU(EvictionPolicy):
    """Evict the region whose last known use is oldest.

    Known uses are faults and notifications, so the regions nearest eviction are the ones observed
    (ObservUVM, VI-A).
    """

    sees = Samples(regions=100)
    in_driver = False
    compiled = Twin(_lru, list_words)

    def on_fault(self, region: int) -> None:
        self.order.move_to_tail(region)

    def on_notification(self, region: int) -> None:
        self.order.move_to_tail(region)

    def on_eviction(self, region: int) -> None:
        self.order.remove(region)

    def victim(self) -> int:
        return self.order.head

    def observe(self) -> int | None:
        return first(self.order, unless=self.observed)

    def finished(self) -> None:
        assert set(self.order) == self.resident
