"""Least recently used, by known uses."""

from __future__ import annotations

from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.interface.visibility import Samples
from tidegate.policies.registries import eviction
from tidegate.policies.structures.order import first


@eviction("lru")
class LRU(EvictionPolicy):
    """Evict the region whose last known use is oldest.

    Known uses are faults and notifications, so the regions nearest eviction are the ones observed
    (ObservUVM, VI-A).
    """

    sees = Samples(regions=100)
    in_driver = False

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
