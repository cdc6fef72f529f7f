"""Whole regions for streams, the tree for the rest."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.policies.interface.policy import PrefetchPolicy
from tidegate.policies.registries import prefetch
from tidegate.policies.structures.column import Column, Marks


@prefetch("stream")
class Stream(PrefetchPolicy):
    """Fetch the whole region where faults go on from region to region, up or down; elsewhere use
    the tree.

    A region continues a stream if the latest fault of the region before it was one of the last
    ``window`` regions to fault, so several streams may go on at a time, and if this fault is where
    scattered uses seldom are: near an end of the region, or, as in a walk back by blocks, at the
    page where the region before it was entered, which was then used to an end. Up to ``skip``
    resident regions in between are passed over: a loop of which a part stays near does not fault
    there. The policy is ours: read-ahead as file systems do it, by regions.
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
        self._entry = Column(-1)  # by region: the page of the latest entry, or -1
        self._to_end = Marks()  # regions that were used to an end, or fetched as a whole
        self._up = Column(0)  # by region: regions in a row until there, from below
        self._down = Column(0)  # and from above
        self.memory.set_prefetch_threshold(self.threshold)

    def on_fault(self, region: int) -> None:
        at_end = self._is_at_end(region)
        if region != self._latest:
            self._now += 1
            if not self._is_recent(region):  # a further fault of a region does not end its stream
                self._enter(region, at_end)
            self._when[region], self._latest = self._now, region
            is_stream = max(self._up[region], self._down[region]) > self.least
            self.memory.set_prefetch_threshold(0 if is_stream else self.threshold)
            at_end = at_end or is_stream
        if at_end:
            self._to_end.add(region)

    def _enter(self, region: int, at_end: bool) -> None:
        """Note how many regions in a row lead here, from below and from above."""
        self._to_end.discard(region)
        self._entry[region] = self._first_page(region)
        below, above = self._source(region, -1, at_end), self._source(region, 1, at_end)
        self._up[region] = 1 + (self._up[below] if below >= 0 else 0)
        self._down[region] = 1 + (self._down[above] if above >= 0 else 0)

    def _first_page(self, region: int) -> int:
        """Return the first page that faulted, or -1.

        None faulted in a region that the program pinned and hands back.
        """
        for page in self.memory.faulted(region):
            return page
        return -1

    def _is_at_end(self, region: int) -> bool:
        """Return whether a page near an end of the region faulted."""
        last = self.memory.geometry.pages_per_region - 1
        most = int(self.entry * last)  # pages between the fault and the end
        return any(p <= most or p >= last - most for p in self.memory.faulted(region))

    def _source(self, region: int, step: int, at_end: bool) -> int:
        """Return the region from which a stream enters this one, or -1."""
        before = self._before(region, step)
        if before < 0 or at_end:
            return before
        is_alike = before in self._to_end and self._entry[before] == self._entry[region] >= 0
        return before if is_alike else -1

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
