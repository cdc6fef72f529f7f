"""Tide's prefetch: whole regions for streams, as long as they are used."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.policies.interface.policy import Decision
from tidegate.policies.interface.visibility import Samples
from tidegate.policies.prefetch.stream import Stream
from tidegate.policies.registries import prefetch
from tidegate.policies.structures.column import Marks


@prefetch("tide")
class TidePrefetch(Stream):
    """Fetch the whole region where faults go on from region to region, while that pays.

    Streams are followed as ``stream`` does. In one of ``every`` regions that come with more pages
    than faulted, one of these is left far; whether it is used before the region leaves tells
    whether the prefetch was worth the link (FDP; ObservUVM, VI-C). When fewer than half of the
    latest verdicts are good, the tree alone is left, until they are good again. Nothing is fetched
    into a region that has no frame, so that no prefetch evicts what the eviction policy keeps.
    """

    sees = Samples(regions=100)
    in_driver = False
    # 16: as fdp; a watched page costs one access over the link for 16 regions that come
    every = Option(16, "one prefetched region in so many is watched", least=1)
    # 16: as many as fdp waits for
    verdicts = Option(16, "verdicts that count; older ones fade", least=1, most=1 << 20)

    def start(self) -> None:
        super().start()
        self._watched = Marks()
        self._prefetches = 0
        self._good = float(self.verdicts)  # a fading sum of good verdicts, all of them at first

    def on_fault(self, region: int) -> None:
        super().on_fault(region)
        if not self.pays:
            self.memory.set_prefetch_threshold(self.threshold)

    def on_prefetch(self, region: int) -> None:
        self._prefetches += 1
        if self._prefetches % self.every == 0 and region not in self.memory.observed:
            self._watched.add(region)
            self.memory.observe_prefetched(region)

    def on_notification(self, region: int) -> None:
        if region in self._watched:
            self._judge(region, 1)

    def on_eviction(self, region: int) -> None:
        if region in self._watched:
            self._judge(region, 0)

    @property
    def pays(self) -> bool:
        """Whether at least half of the latest verdicts are good."""
        return 2 * self._good >= self.verdicts

    def decisions(self) -> list[Decision]:
        what = "whole regions" if self.pays else "the tree alone"
        return [Decision(f"prefetch {what}", f"{self._prefetches:,} prefetches")]

    def _judge(self, region: int, good: int) -> None:
        self._watched.discard(region)
        self._good += good - self._good / self.verdicts
