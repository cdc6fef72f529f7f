"""CLOCK: second chance."""

from __future__ import annotations

from tidegate.compiled.jit import jit_policy
from tidegate.policies.interface.events import EVENT_BITS, EVICTION, VICTIM
from tidegate.policies.interface.header import OWN, REGIONS, TOUCHES
from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.interface.twin import (
    Twin,
    append,
    contains,
    head,
    last_touch,
    links,
    list_words,
    remove,
    words_at,
)
from tidegate.policies.interface.visibility import Everything
from tidegate.policies.registries import eviction


@jit_policy
def _clock(own: int, event: int) -> int:
    h = words_at(own, OWN)
    order = links(own)
    stamp = words_at(own + 8 * (OWN + 2 * (h[REGIONS] + 1)), h[REGIONS])
    now = words_at(h[TOUCHES], 1)[0]
    if event == VICTIM:
        while head(order) >= 0 and last_touch(own, head(order)) > stamp[head(order)]:
            region = head(order)
            stamp[region] = now - 1
            remove(order, region)
            append(order, region)
        return head(order)
    region = event >> EVENT_BITS
    if event & 255 == EVICTION:
        remove(order, region)
    elif not contains(order, region):
        append(order, region)
        stamp[region] = now
    return 0


@eviction("clock")
class Clock(EvictionPolicy):
    """Go round the regions in the order of their arrival; one touched since the hand last came by
    is passed over once.

    A region's reference bit is whether its last touch is later than its stamp. The touch that its
    own fault waited for does not count (Corbató 1968).
    """

    sees = Everything()
    compiled = Twin(_clock, lambda regions: list_words(regions) + regions)

    def start(self) -> None:
        self._stamp: dict[int, int] = {}

    def on_fault(self, region: int) -> None:
        if region not in self.order:
            self.order.move_to_tail(region)
            self._stamp[region] = self.memory.now

    def on_eviction(self, region: int) -> None:
        self.order.remove(region)

    def victim(self) -> int:
        while self.memory.last_touch(self.order.head) > self._stamp[self.order.head]:
            self._stamp[self.order.head] = self.memory.now - 1
            self.order.move_to_tail(self.order.head)
        return self.order.head

    def finished(self) -> None:
        assert set(self.order) == self.resident
