"""Random replacement."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.registries import eviction
from tidegate.policies.structures.column import Column
from tidegate.policies.structures.draws import Draws

_NOWHERE = -1


@eviction("random")
class Random(EvictionPolicy):
    """Evict a random resident region; the seed makes it repeatable."""

    seed = Option(0, "of the random numbers", least=0)

    def start(self) -> None:
        self._draws = Draws(self.seed)
        self._count = 0
        self._regions = Column(_NOWHERE)  # at each place, from 0 to ``_count`` - 1
        self._place = Column(_NOWHERE)  # of each resident region

    def on_fault(self, region: int) -> None:
        if self._place[region] == _NOWHERE:
            self._place[region] = self._count
            self._regions[self._count] = region
            self._count += 1

    def on_eviction(self, region: int) -> None:
        self._count -= 1
        last, hole = self._regions[self._count], self._place[region]
        self._regions[hole], self._place[last] = last, hole
        self._place[region] = _NOWHERE

    def victim(self) -> int:
        return self._regions[self._draws.below(self._count)]

    def finished(self) -> None:
        assert {self._regions[place] for place in range(self._count)} == self.resident
