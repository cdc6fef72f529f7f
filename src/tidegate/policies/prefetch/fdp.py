"""Feedback-driven prefetch: prefetch more where past prefetches were used."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.policies.interface.policy import Decision, PrefetchPolicy
from tidegate.policies.interface.visibility import Samples
from tidegate.policies.registries import prefetch
from tidegate.policies.structures.column import Marks


@prefetch("fdp")
class FDP(PrefetchPolicy):
    """Choose between the driver's tree prefetch (51 %) and taking whole regions (1 %), by feedback
    (ObservUVM, Alg. 2).

    In some prefetched regions one prefetched page is left far. If it is used before the region is
    evicted, the prefetch was useful. After ``enough`` verdicts the threshold is ``bold`` if more
    than ``share`` of them were useful. Regions that another prefetcher brought without a fault say
    nothing about the threshold and are not watched.
    """

    sees = Samples(regions=100)
    in_driver = False
    every = Option(16, "one prefetched region in so many is watched; the paper says a few", least=1)
    enough = Option(16, "verdicts before the threshold is chosen (T)", least=1, counts_regions=True)
    share = Option(0.8, "of useful verdicts, above which it is bold", least=0, most=1)
    bold = Option(1, "threshold when prefetches are used", least=1, most=100)
    shy = Option(51, "threshold when they are not", least=1, most=100)

    def start(self) -> None:
        self.threshold = self.shy
        self._watching = Marks()
        self.useful = self.verdicts = self._prefetches = 0
        self._changed_after = 0  # verdicts, when the threshold got its present value
        self.memory.set_prefetch_threshold(self.shy)

    def on_prefetch(self, region: int) -> None:
        if not len(self.memory.faulted(region)):
            return
        self._prefetches += 1
        if self._prefetches % self.every == 0 and region not in self.memory.observed:
            self._watching.add(region)
            self.memory.observe_prefetched(region)

    def on_notification(self, region: int) -> None:
        if region in self._watching:
            self._verdict(region, useful=True)

    def on_eviction(self, region: int) -> None:
        if region in self._watching:
            self._verdict(region, useful=False)

    def report(self) -> dict[str, object]:
        return {"threshold": self.threshold, "verdicts": self.verdicts, "useful": self.useful}

    def decisions(self) -> list[Decision]:
        verdicts = f"{self._changed_after:,} verdicts"
        used = f"{self.useful:,} of {self.verdicts:,} prefetches used"
        return [Decision(f"threshold {self.threshold}", f"{verdicts}; {used} in all")]

    def _verdict(self, region: int, useful: bool) -> None:
        self._watching.discard(region)
        self.useful += useful
        self.verdicts += 1
        if self.verdicts > self.enough:
            chosen = self.bold if self.useful > self.share * self.verdicts else self.shy
            if chosen != self.threshold:
                self._changed_after = self.verdicts
            self.threshold = chosen
            self.memory.set_prefetch_threshold(self.threshold)
