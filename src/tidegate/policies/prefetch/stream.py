"""Whole regions for streams, the tree for the rest."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.policies.interface.policy import PrefetchPolicy
from tidegate.policies.registries import prefetch
from tidegate.policies.structures.column import Column


@prefetch("stream")
class Stream(PrefetchPolicy):
    """Fetch the whole region where faults go on from region to region, either way; elsewhere use
    the tree.

    A region continues a stream if its neighbour's latest fault was one of the last ``window``
    regions to fault, so several streams may go on at a time. The policy is ours: read-ahead as file
    systems do it, by regions.
    """

    least = Option(2, "regions in a row before a whole one is fetched", least=1)
    window = Option(8, "regions that may fault between two of a stream", least=1)
    threshold = Option(51, "per cent, of the tree where there is no stream", least=1, most=100)

    def start(self) -> None:
        self._now = 0  # counts regions that fault, not faults in the same one
        self._latest = -1
        self._when = Column(0)  # by region: the count at its latest fault
        self._length = Column(0)  # by region: regions in a row until there
        self.memory.set_prefetch_threshold(self.threshold)

    def on_fault(self, region: int) -> None:
        if region == self._latest:
            return
        self._now += 1
        length = self._recent(region)  # a further fault of a region does not end its stream
        if length == 0:
            length = 1 + max(self._recent(region - 1), self._recent(region + 1))
        self._when[region], self._length[region] = self._now, length
        self._latest = region
        is_stream = length > self.least
        self.memory.set_prefetch_threshold(0 if is_stream else self.threshold)

    def _recent(self, region: int) -> int:
        """Return the length of the stream at this region; 0 if it did not fault recently."""
        if not 0 <= region < self.memory.regions or self._when[region] == 0:
            return 0
        return self._length[region] if self._now - self._when[region] <= self.window else 0
