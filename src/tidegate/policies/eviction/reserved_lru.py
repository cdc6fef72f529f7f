"""LRU that keeps the oldest regions."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.interface.steering import End, Steering
from tidegate.policies.registries import eviction
from tidegate.policies.structures.order import Order


@eviction("reserved-lru")
class ReservedLRU(EvictionPolicy):
    """Evict the oldest region except the ``percent`` % that are oldest of all (Ganguly et al.,
    ISCA'19; CPPE, III).

    Reserved regions stay for the next pass of a program that thrashes. Age is time since migration,
    which a driver can see.
    """

    percent = Option(
        10,
        "share of the resident regions, from the oldest, that is never evicted",
        least=0,
        most=99,
    )

    def start(self) -> None:
        self._reserved, self._rest = Order(), Order()

    def on_fault(self, region: int) -> None:
        if region in self._reserved:
            self._reserved.remove(region)
        self._rest.move_to_tail(region)
        self._settle()

    def on_eviction(self, region: int) -> None:
        # the next fault settles the shares
        (self._reserved if region in self._reserved else self._rest).remove(region)

    def victim(self) -> int:
        return self._rest.head if self._rest else self._reserved.tail

    def steering(self) -> Steering:
        return Steering(self.memory.frames * self.percent // 100, End.UNUSED_TAIL)

    def finished(self) -> None:
        assert set(self._reserved) | set(self._rest) == self.resident

    def _settle(self) -> None:
        """Reserve the oldest, ``percent`` of all; at least one region is not reserved."""
        wanted = (len(self._reserved) + len(self._rest)) * self.percent // 100
        while len(self._reserved) < wanted:
            region = self._rest.head
            self._rest.remove(region)
            self._reserved.move_to_tail(region)
        while len(self._reserved) > wanted:
            region = self._reserved.tail
            self._reserved.remove(region)
            self._rest.move_to_head(region)
