"""CLOCK: second chance."""

from __future__ import annotations

from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.interface.visibility import Everything
from tidegate.policies.registries import eviction
from tidegate.policies.structures.column import Column


@eviction("clock")
class Clock(EvictionPolicy):
    """Go round the regions in the order of their arrival; pass over one that was touched since the
    last round, once.

    A region's reference bit is whether its last touch is later than its stamp. The touch that its
    own fault waited for does not count (Corbató 1968).
    """

    sees = Everything()

    def start(self) -> None:
        self._stamp = Column(0)

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
