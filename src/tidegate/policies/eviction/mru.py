"""Most recently used first."""

from __future__ import annotations

from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.interface.steering import End, Steering
from tidegate.policies.registries import eviction


@eviction("mru")
class MRU(EvictionPolicy):
    """Evict the region into which pages were migrated last: best for loops larger than memory
    (Denning 1968).

    Known uses are faults alone, so this is the mirror image of LRM. Regions of the batch being
    served are passed over, because their pages are still on the way.
    """

    def on_fault(self, region: int) -> None:
        self.order.move_to_tail(region)

    def on_eviction(self, region: int) -> None:
        self.order.remove(region)

    def victim(self) -> int:
        return next(
            (r for r in reversed(self.order) if not self.memory.is_served(r)), self.order.tail
        )

    def steering(self) -> Steering:
        return Steering(0, End.UNUSED_HEAD)

    def finished(self) -> None:
        assert set(self.order) == self.resident
