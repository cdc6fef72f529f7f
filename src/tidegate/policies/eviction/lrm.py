"""Least recently migrated: what NVIDIA's driver does."""

from __future__ import annotations

from tidegate.compiled.jit import jit_policy
from tidegate.policies.interface.events import EVENT_BITS, EVICTION, VICTIM
from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.interface.twin import Twin, append, head, links, list_words, remove
from tidegate.policies.registries import eviction


@jit_policy
def _lrm(own: int, event: int) -> int:
    order = links(own)
    if event == VICTIM:
        return head(order)
    region = event >> EVENT_BITS
    remove(order, region)
    if event & 255 != EVICTION:
        append(order, region)
    return 0


@eviction("lrm")
class LRM(EvictionPolicy):
    """Evict the region into which pages were migrated longest ago.

    A frame moves to the tail when it is allocated and on every migration into it, never on access:
    the driver cannot see accesses (NVIDIA open-gpu-kernel-modules, uvm_pmm_gpu.c; ObservUVM, II-D).
    """

    compiled = Twin(_lrm, list_words)

    def on_fault(self, region: int) -> None:
        self.order.move_to_tail(region)

    def on_eviction(self, region: int) -> None:
        self.order.remove(region)

    def victim(self) -> int:
        return self.order.head

    def finished(self) -> None:
        assert set(self.order) == self.resident
