"""Belady: the region needed furthest in the future."""

from __future__ import annotations

from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.interface.visibility import Everything
from tidegate.policies.registries import eviction


@eviction("belady")
class Belady(EvictionPolicy):
    """Evict the resident region whose next touch is furthest away; ties go to the lowest region
    (Belady 1966).

    Exact with one slot: then no demand-paging policy has fewer misses. With many slots the future
    depends on which slots stall, and this is Belady on the future of an ideal run
    (simulation/gpu/future.py): a line to measure against, not a bound. It costs 4 bytes per touch
    of the trace.
    """

    sees = Everything(future=True)

    def victim(self) -> int:
        victim = furthest = last = -1
        for region in sorted(self.resident):
            last = region
            when = self.memory.next_touch(region)
            if when > furthest and not self.memory.is_served(region):
                victim, furthest = region, when
        return victim if victim >= 0 else last
