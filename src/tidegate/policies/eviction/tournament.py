"""Tournament: let policies compete, and retire those whose evictions are regretted."""

from __future__ import annotations

from typing import Any

from tidegate.errors import TidegateError
from tidegate.options import Option, split_outside
from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.interface.visibility import Everything, Faults, Samples, Sees, TouchBits
from tidegate.policies.registries import eviction
from tidegate.policies.twins.tournament import TOURNAMENT_TWIN


@eviction("tournament")
class Tournament(EvictionPolicy):
    """Ask several policies for victims in turn; blame each for the regions that come back; retire
    the worst.

    When blames exceed ``patience``, every active policy with more than ``margin`` times an even
    share of all blames retires (ObservUVM, Algorithm 1). All policies are told of everything, so
    that each one's list is right whoever evicted.

    Open readings: the active policies observe in turn, each no more than its share of the regions,
    or one with patient candidates would starve the others; a policy is blamed once per eviction,
    and for evictions only: a victim that was served in the same turn is named and stays; blames are
    kept for good, as the algorithm has it, unless ``afresh``.
    """

    sees: Sees = Samples(regions=100)
    in_driver = False
    compiled = TOURNAMENT_TWIN
    policies = Option("lru+lfu+cp", "the contestants, joined by +; a user's own is file.py:Class")
    patience = Option(100, "blames before a judgement (T)", least=1)
    margin = Option(1.2, "times the average blame at which a policy retires", least=1)
    afresh = Option(False, "count blames from zero after a retirement")

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.contestants = [eviction.make(spec) for spec in split_outside(self.policies, "+")]
        self.parts = self.contestants
        if len(self.contestants) < 2:
            raise TidegateError(
                f"tournament(policies={self.policies}) has one contestant; join two or more with +"
            )
        if any(isinstance(p.sees, Everything) for p in self.contestants):
            self.sees = next(p.sees for p in self.contestants if isinstance(p.sees, Everything))
        elif any(isinstance(p.sees, TouchBits) for p in self.contestants):
            if any(isinstance(p.sees, Samples) for p in self.contestants):
                raise TidegateError(
                    f"tournament(policies={self.policies}): some see touch bits, others samples; no hardware has both"
                )
            self.sees = TouchBits()
        elif all(isinstance(p.sees, Faults) for p in self.contestants):
            self.sees = Faults()

    def start(self) -> None:
        self._active = list(self.contestants)
        self._cause: dict[int, EvictionPolicy] = {}  # who had a region evicted that is not back yet
        # the latest victim, until it leaves, and who named it
        self._named: tuple[int, EvictionPolicy] | None = None
        self._blame = {id(p): 0 for p in self.contestants}
        self._blames = 0  # of all
        self._watched: dict[int, int] = {}  # who asked for an observed region
        self._watches = {id(p): 0 for p in self.contestants}  # how many of them each asked for
        self._turn = self._watch = 0
        self.retired: list[str] = []
        for policy in self.contestants:
            policy.attach(self.memory)
            policy.start()

    def on_fault(self, region: int) -> None:
        self._came_back(region)
        for policy in self.contestants:
            policy.on_fault(region)

    def on_prefetch(self, region: int) -> None:
        self._came_back(region)
        for policy in self.contestants:
            policy.on_prefetch(region)

    def on_notification(self, region: int) -> None:
        self._unwatch(region)
        for policy in self.contestants:
            policy.on_notification(region)

    def on_eviction(self, region: int) -> None:
        self._unwatch(region)
        if self._named and self._named[0] == region:
            self._cause[region] = self._named[1]
            self._named = None
        for policy in self.contestants:
            policy.on_eviction(region)

    def on_launch(self, launch: int) -> None:
        for policy in self.contestants:
            policy.on_launch(launch)

    def victim(self) -> int:
        self._turn = (self._turn + 1) % len(self._active)
        chosen = self._active[self._turn]
        region = chosen.victim()
        self._named = region, chosen
        return region

    def observe(self) -> int | None:
        count = len(self._active)
        share = -(-self.memory.observable // count)
        for _ in range(count):
            self._watch = (self._watch + 1) % count
            policy = self._active[self._watch]
            if self._watches[id(policy)] < share:
                region = policy.observe()
                if region is not None:
                    self._unwatch(region)
                    self._watched[region] = id(policy)
                    self._watches[id(policy)] += 1
                    return region
        return None

    def finished(self) -> None:
        for policy in self.contestants:
            policy.finished()

    def report(self) -> dict[str, object]:
        return {"left": [p.name for p in self._active], "retired": self.retired}

    def judged(self, left: list[EvictionPolicy], losers: list[EvictionPolicy]) -> None:
        """These go on, and those retire."""
        self._active = left
        self.retired += [p.name for p in losers]

    def _unwatch(self, region: int) -> None:
        if region in self._watched:
            self._watches[self._watched.pop(region)] -= 1

    def _came_back(self, region: int) -> None:
        culprit = self._cause.pop(region, None)
        if culprit is not None:
            self._blame[id(culprit)] += 1
            self._blames += 1
            if self._blames > self.patience and len(self._active) > 1:
                self._judge(culprit)

    def _judge(self, culprit: EvictionPolicy) -> None:
        # a blame raises its culprit's share and lowers all others', so after the first judgement
        # only it can be too high
        suspects = self._active if self._blames == self.patience + 1 else [culprit]
        most = self.margin / len(self._active) * self._blames
        losers = [p for p in suspects if self._blame[id(p)] > most and p in self._active]
        if losers:
            self.judged([p for p in self._active if p not in losers], losers)
            self._turn = self._watch = 0
            if self.afresh:
                self._blame, self._blames = {id(p): 0 for p in self.contestants}, 0
