"""Tournament: several policies compete; those with the worst evictions retire."""

from __future__ import annotations

from typing import Any

from tidegate.errors import TidegateError
from tidegate.options import Option, split_outside
from tidegate.policies.interface.policy import Decision, EvictionPolicy
from tidegate.policies.interface.visibility import Everything, Faults, Samples, Sees, TouchBits
from tidegate.policies.registries import eviction
from tidegate.policies.structures.column import Column

_NONE = -1


@eviction("tournament")
class Tournament(EvictionPolicy):
    """Take victims of several policies in turn; blame each for the regions that come back; retire
    the worst.

    Algorithm 1 of ObservUVM: an eviction notes its cause; every page fault of a region blames the
    cause of its latest eviction, also faults that follow while the region fills; prefetches blame
    nobody. When blames exceed T, every active policy with more than ``margin`` times an even share
    of the blames retires. All policies get all events, so that the list of each is right.

    An even share is 1 / |A|, so it is one of the blames of the active policies A: "more than 20 %
    higher blame than the average", of "its contemporaries". With those of retired ones in the sum
    (``average=all``), two that are left would need three fifths of a sum that is not theirs alone.

    T is open. It counts page faults, of which a region has up to 32, and they blame one decision.
    What a judgement rests on is the number of decisions: the share of an average policy of three is
    1/3 ± √(2/9k) after k of them, and it retires at 0.4. With 100 page faults, k is 3 or 4, and it
    retires by chance; with 100 regions it takes 1.4 standard deviations. So ``patience`` counts
    regions, and T is as many faults as they have pages. The paper's other windows are 100 regions.

    Open readings: whether a fault is one for each page, as the paper's are, or for each region of a
    batch, or counts only once per eviction (``blame``); the active policies observe in turn, each
    no more than its share of the regions, or one policy could take all; a victim that was served in
    the same turn stays and blames nobody; blames are kept for good, as in the algorithm, unless
    ``afresh``.
    """

    sees: Sees = Samples(regions=100)
    in_driver = False
    policies = Option("lru+lfu+cp", "the contestants, joined by +; yours is file.py:Class")
    blame = Option(
        "pages",
        "what is blamed: every page that faults, every batch in which a region faults, or an "
        "eviction once, when its region returns by a fault or a prefetch",
        choices=("pages", "batches", "evictions"),
    )
    patience = Option(
        100,
        "regions before a judgement: T of Algorithm 1, or T over the pages of a region",
        least=1,
        counts_regions=True,
    )
    margin = Option(1.2, "times the average blame at which a policy retires", least=1)
    average = Option(
        "active",
        "whose blames the average is of: the policies still active, or also those retired",
        choices=("active", "all"),
    )
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
                    f"tournament(policies={self.policies}): some see touch bits, others samples; "
                    "no hardware has both"
                )
            self.sees = TouchBits()
        elif all(isinstance(p.sees, Faults) for p in self.contestants):
            self.sees = Faults()

    def start(self) -> None:
        # contestants go by their numbers
        count = len(self.contestants)
        self._active = list(range(count))  # the first ``_left`` of them
        self._left = count
        self._retired = [_NONE] * count
        self._retired_after = [0] * count  # evictions, when each of them retired
        self._evictions = 0
        self._of_active = self.average == "active"
        self._once, self._by_page = self.blame == "evictions", self.blame == "pages"
        per_region = self.memory.geometry.pages_per_region if self._by_page else 1
        self._most_blames = self.patience * per_region  # T
        self._cause = Column(_NONE)  # which one named a region that was evicted
        # the latest victim, until it leaves, and which one named it
        self._named = self._namer = _NONE
        self._points = [0] * count  # blames of each
        self._blames = 0  # of all
        self._watched = Column(_NONE)  # which one asked for an observed region
        self._watches = [0] * count  # how many of them each asked for
        self._turn = self._watch = 0
        for policy in self.contestants:
            policy.attach(self.memory)
            policy.start()

    def on_fault(self, region: int) -> None:
        faults = len(self.memory.faulted(region)) if self._by_page else 1
        for _ in range(faults):
            self._blame_cause(region)
        for policy in self.contestants:
            policy.on_fault(region)

    def on_prefetch(self, region: int) -> None:
        if self._once:
            self._blame_cause(region)
        for policy in self.contestants:
            policy.on_prefetch(region)

    def on_notification(self, region: int) -> None:
        self._unwatch(region)
        for policy in self.contestants:
            policy.on_notification(region)

    def on_eviction(self, region: int) -> None:
        self._evictions += 1
        self._unwatch(region)
        if self._named == region:
            self._cause[region] = self._namer
            self._named = _NONE
        for policy in self.contestants:
            policy.on_eviction(region)

    def on_free(self, region: int) -> None:
        self._unwatch(region)
        for policy in self.contestants:
            policy.on_free(region)

    def on_launch(self, launch: int) -> None:
        for policy in self.contestants:
            policy.on_launch(launch)

    def victim(self) -> int:
        self._turn = (self._turn + 1) % self._left
        self._namer = self._active[self._turn]
        self._named = self.contestants[self._namer].victim()
        return self._named

    def observe(self) -> int | None:
        share = -(-self.memory.observable // self._left)
        for _ in range(self._left):
            self._watch = (self._watch + 1) % self._left
            contestant = self._active[self._watch]
            if self._watches[contestant] < share:
                region = self.contestants[contestant].observe()
                if region is not None:
                    self._unwatch(region)
                    self._watched[region] = contestant
                    self._watches[contestant] += 1
                    return region
        return None

    def finished(self) -> None:
        for policy in self.contestants:
            policy.finished()

    def report(self) -> dict[str, object]:
        return {"left": self._names(self._active[: self._left]), "retired": self._names_retired()}

    def decisions(self) -> list[Decision]:
        retired = zip(self._names_retired(), self._retired_after, strict=False)
        made = [Decision(f"retired {name}", f"{n:,} evictions") for name, n in retired]
        kept = " ".join(self._names(self._active[: self._left]))
        return [*made, Decision(f"kept {kept}", f"{self._evictions:,} evictions")]

    def _names_retired(self) -> list[str]:
        return self._names(self._retired[: len(self.contestants) - self._left])

    def _names(self, numbers: list[int]) -> list[str]:
        return [self.contestants[i].name for i in numbers]

    def _unwatch(self, region: int) -> None:
        if self._watched[region] != _NONE:
            self._watches[self._watched[region]] -= 1
            self._watched[region] = _NONE

    def _blame_cause(self, region: int) -> None:
        """Blame whoever had this region evicted last."""
        culprit = self._cause[region]
        if culprit == _NONE:
            return
        if self._once:
            self._cause[region] = _NONE
        self._points[culprit] += 1
        self._blames += 1
        if self._blames > self._most_blames and self._left > 1:
            self._judge()

    def _judge(self) -> None:
        """Retire the worst; the others keep their order."""
        blames = self._blames
        if self._of_active:
            blames = 0
            for i in range(self._left):
                blames += self._points[self._active[i]]
        stay, retired = 0, len(self.contestants) - self._left
        for i in range(self._left):
            contestant = self._active[i]
            if self._points[contestant] * self._left > self.margin * blames:
                self._retired[retired] = contestant
                self._retired_after[retired] = self._evictions
                retired += 1
            else:
                self._active[stay] = contestant
                stay += 1
        if stay < self._left:
            self._left = stay
            self._turn = self._watch = 0
            if self.afresh:
                self._blames = 0
                for contestant in range(len(self._points)):
                    self._points[contestant] = 0
