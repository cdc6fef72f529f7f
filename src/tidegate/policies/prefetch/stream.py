"""Whole regions for streams, the tree for the rest."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.policies.interface.policy import PrefetchPolicy
from tidegate.policies.registries import prefetch
from tidegate.policies.structures.column import Column


@prefetch("stream")
class Stream(PrefetchPolicy):
    """Fetch the whole region where faults go on from region to region, up or down; elsewhere use
    the tree.

    A region continues a stream if the latest fault of the region before it was one of the last
    ``window`` regions to fault, so several streams may go on at a time, and if this fault is near
    an end of the region, where scattered uses seldom are. Up to ``skip`` resident regions in
    between are passed over: a loop of which a part stays near does not fault there. The policy is
    ours: read-ahead as file systems do it, by regions.
    """

    least = Option(2, "regions in a row before a whole one is fetched", least=1)
    window = Option(8, "regions that may fault between two of a stream", least=1)
    skip = Option(4, "resident regions between two of a stream", least=0)
    entry = Option(0.125, "share of a region, at each end, where streams enter", least=0, most=1)
    threshold = Option(51, "per cent, of the tree where there is no stream", least=1, most=100)

    def start(self) -> None:
        self._now = 0  # counts regions that fault, not faults in the same one
        self._latest = -1
        self._when = Column(0)  # by region: the count at its latest fault
        self._up = Column(0)  # by region: regions in a row until there, from below
        self._down = Column(0)  # and from above
        self.memory.set_prefetch_threshold(self.threshold)

    def on_fault(self, region: int) -> None:
        if region == self._latest:
            return
        self._now += 1
        if not self._is_recent(region):  # a further fault of a region does not end its stream
            self._enter(region)
        self._when[region], self._latest = self._now, region
        is_stream = max(self._up[region], self._down[region]) > self.least
        self.memory.set_prefetch_threshold(0 if is_stream else self.threshold)

    def _enter(self, region: int) -> None:
        """Note how many regions in a row lead here, from below and from above."""
        last = self.memory.geometry.pages_per_region - 1
        most = int(self.entry * last)  # pages between the fault and the end
        # none faulted in a region that the program pinned and hands back
        is_entry = any(p <= most or p >= last - most for p in self.memory.faulted(region))
        below = self._before(region, -1) if is_entry else -1
        above = self._before(region, 1) if is_entry else -1
        self._up[region] = 1 + (self._up[below] if below >= 0 else 0)
        self._down[region] = 1 + (self._down[above] if above >= 0 else 0)

    def _before(self, region: int, step: int) -> int:
        """Return the region that a stream through this one came from, or -1."""
        at, skipped = region + step, 0
        while 0 <= at < self.memory.regions:
            if self._is_recent(at):
                return at
            if skipped == self.skip or not self.memory.is_resident(at):
                return -1
            at, skipped = at + step, skipped + 1
        return -1

    def _is_recent(self, region: int) -> bool:
        """Return whether the region was one of the last to fault."""
        return self._when[region] > 0 and self._now - self._when[region] <= self.window
