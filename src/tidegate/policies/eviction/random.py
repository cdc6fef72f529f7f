"""Random replacement."""

from __future__ import annotations

import random

from tidegate.options import Option
from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.registries import eviction


@eviction("random")
class Random(EvictionPolicy):
    """Evict any resident region, each as likely as the other; the seed makes it repeatable."""

    seed = Option(0, "of the random numbers", least=0)

    def start(self) -> None:
        self._draw = random.Random(self.seed).randrange
        self._regions: list[int] = []
        # where each region is in the list, so that it can be taken out at once
        self._place: dict[int, int] = {}

    def on_fault(self, region: int) -> None:
        if region not in self._place:
            self._place[region] = len(self._regions)
            self._regions.append(region)

    def on_eviction(self, region: int) -> None:
        hole, last = self._place.pop(region), self._regions.pop()
        if last != region:
            self._regions[hole] = last
            self._place[last] = hole

    def victim(self) -> int:
        return self._regions[self._draw(len(self._regions))]

    def finished(self) -> None:
        assert set(self._regions) == self.resident
