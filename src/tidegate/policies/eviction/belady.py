"""Belady: the region needed furthest in the future."""

from __future__ import annotations

from tidegate.compiled.jit import jit_policy
from tidegate.policies.interface.events import VICTIM
from tidegate.policies.interface.header import (
    FUTURE_FIRST,
    FUTURE_SIZE,
    FUTURE_WHEN,
    OWN,
    REGION_TOUCHES,
    REGIONS,
    RESIDENT,
)
from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.interface.twin import Twin, halves_at, is_served, words_at
from tidegate.policies.interface.visibility import Everything
from tidegate.policies.registries import eviction


@jit_policy
def _belady(own: int, event: int) -> int:
    if event != VICTIM:
        return 0
    h = words_at(own, OWN)
    n = h[REGIONS]
    resident, touches = halves_at(h[RESIDENT], n), words_at(h[REGION_TOUCHES], n)
    first, when = words_at(h[FUTURE_FIRST], n), halves_at(h[FUTURE_WHEN], h[FUTURE_SIZE])
    victim, furthest, last = -1, -1, -1
    for region in range(n):
        if resident[region]:
            last = region
            due = when[first[region] + touches[region]]
            if due > furthest and not is_served(own, region):
                victim, furthest = region, due
    return victim if victim >= 0 else last


@eviction("belady")
class Belady(EvictionPolicy):
    """Evict the resident region whose next touch is furthest away; ties go to the lowest region
    (Belady 1966).

    Exact with one slot: then no demand-paging policy has fewer misses. With many slots the future
    depends on who stalls, and this is Belady on the future of an ideal run
    (simulation/gpu/future.py): a line to measure against, not a bound. It costs 4 bytes per touch
    of the trace.
    """

    sees = Everything(future=True)
    compiled = Twin(_belady)

    def victim(self) -> int:
        free = [r for r in sorted(self.resident) if not self.memory.is_served(r)]
        return max(free, key=self.memory.next_touch) if free else max(self.resident)
