"""Least recently migrated: the policy of NVIDIA's driver."""

from __future__ import annotations

from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.interface.steering import End, Steering
from tidegate.policies.registries import eviction


@eviction("lrm")
class LRM(EvictionPolicy):
    """Evict the region into which pages were migrated longest ago.

    A frame moves to the tail when it is allocated and on every migration into it, never on access:
    the driver cannot see accesses (NVIDIA open-gpu-kernel-modules, uvm_pmm_gpu.c; ObservUVM, II-D).
    """

    def on_fault(self, region: int) -> None:
        self.order.move_to_tail(region)

    def on_eviction(self, region: int) -> None:
        self.order.remove(region)

    def victim(self) -> int:
        return self.order.head

    def steering(self) -> Steering:
        return Steering(self.memory.frames, End.USED_TAIL)

    def finished(self) -> None:
        assert set(self.order) == self.resident
