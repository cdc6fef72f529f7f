"""Least recently used, with every touch known."""

from __future__ import annotations

from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.interface.visibility import Everything
from tidegate.policies.registries import eviction
from tidegate.policies.structures.heap import Heap


@eviction("lru-ideal")
class LRUIdeal(EvictionPolicy):
    """Evict the region whose last touch is oldest: what LRU policies approximate.

    Nothing is done per touch. Regions wait in a heap by the last touch known when they were put
    there; when one comes up that has been touched since, it is put back where it belongs.
    """

    sees = Everything()

    def start(self) -> None:
        self._known = Heap()  # resident regions, by the last touch known of each

    def on_fault(self, region: int) -> None:
        if region not in self._known:
            self._known[region] = self.memory.now

    def on_eviction(self, region: int) -> None:
        self._known.remove(region)

    def victim(self) -> int:
        region = self._known.lowest
        while self.memory.last_touch(region) > self._known[region]:
            self._known[region] = self.memory.last_touch(region)
            region = self._known.lowest
        return region

    def finished(self) -> None:
        assert set(self._known) == self.resident
