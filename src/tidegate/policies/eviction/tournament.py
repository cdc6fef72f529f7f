"""Tournament: let policies compete, and retire those whose evictions are regretted."""

from __future__ import annotations

from typing import Any

from tidegate.errors import TidegateError
from tidegate.options import Option
from tidegate.policies.policy import EvictionPolicy
from tidegate.policies.registries import eviction
from tidegate.policies.sees import Everything, Faults, Samples, Sees, TouchBits


@eviction("tournament")
class Tournament(EvictionPolicy):
    """Ask several policies for victims in turn; blame each for the regions that come back; retire the worst.

    When blames exceed ``patience``, every policy with more than ``margin`` times its share of them retires, down to one
    (ObservUVM, Algorithm 1). All policies are told of everything, so that each one's list is right whoever evicted.

    Open readings: whose turn it is to observe (the active policies in turn, so that no one is starved), and that a
    region is blamed on once per eviction.
    """

    sees: Sees = Samples(regions=100)
    in_driver = False
    policies = Option("lru+lfu+cp", "the contestants, joined by +; a user's own is file.py:Class")
    patience = Option(100, "blames before a judgement (T)", least=1)
    margin = Option(1.2, "times the average blame at which a policy retires", least=1)

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.contestants = [eviction.make(spec) for spec in self.policies.split("+")]
        if len(self.contestants) < 2:
            raise TidegateError(f"tournament(policies={self.policies}) has one contestant; join two or more with +")
        if any(isinstance(p.sees, Everything) for p in self.contestants):
            self.sees = next(p.sees for p in self.contestants if isinstance(p.sees, Everything))
        elif any(isinstance(p.sees, TouchBits) for p in self.contestants):
            raise TidegateError("tournament cannot hand over touch bits; leave out policies that see them")
        elif all(isinstance(p.sees, Faults) for p in self.contestants):
            self.sees = Faults()

    def start(self) -> None:
        self._active = list(self.contestants)
        self._cause: dict[int, EvictionPolicy] = {}  # who had a region evicted that is not back yet
        self._blame = {id(p): 0 for p in self.contestants}
        self._turn = self._watch = 0
        self.retired: list[str] = []
        for policy in self.contestants:
            policy.attach(self.memory)
            policy.start()

    def on_fault(self, region: int) -> None:
        culprit = self._cause.pop(region, None)
        if culprit is not None:
            self._blame[id(culprit)] += 1
            self._judge()
        for policy in self.contestants:
            policy.on_fault(region)

    def on_notification(self, region: int) -> None:
        for policy in self.contestants:
            policy.on_notification(region)

    def on_eviction(self, region: int) -> None:
        for policy in self.contestants:
            policy.on_eviction(region)

    def victim(self) -> int:
        self._turn = (self._turn + 1) % len(self._active)
        chosen = self._active[self._turn]
        region = chosen.victim()
        self._cause[region] = chosen
        return region

    def observe(self) -> int | None:
        self._watch = (self._watch + 1) % len(self._active)
        return self._active[self._watch].observe()

    def finished(self) -> None:
        for policy in self.contestants:
            policy.finished()

    def report(self) -> dict[str, object]:
        return {"left": [p.name for p in self._active], "retired": self.retired}

    def _judge(self) -> None:
        total = sum(self._blame.values())
        if total <= self.patience or len(self._active) == 1:
            return
        most = self.margin / len(self._active)
        losers = [p for p in self._active if self._blame[id(p)] / total > most]
        if losers and len(losers) < len(self._active):
            self._active = [p for p in self._active if p not in losers]
            self.retired += [p.name for p in losers]
            self._blame = {id(p): 0 for p in self.contestants}  # the next judgement starts afresh
            self._turn = self._watch = 0
