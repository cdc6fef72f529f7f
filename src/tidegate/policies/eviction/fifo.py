"""First in, first out."""

from __future__ import annotations

from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.interface.steering import End, Steering
from tidegate.policies.registries import eviction


@eviction("fifo")
class FIFO(EvictionPolicy):
    """Evict the region that got its frame longest ago; later faults in it do not matter (Belady
    1966).
    """

    def on_fault(self, region: int) -> None:
        if region not in self.order:
            self.order.move_to_tail(region)

    def on_eviction(self, region: int) -> None:
        self.order.remove(region)

    def victim(self) -> int:
        return self.order.head

    def steering(self) -> Steering:
        return Steering(self.memory.frames, End.USED_TAIL)

    def finished(self) -> None:
        assert set(self.order) == self.resident
