"""Region-grain prefetch: ahead of streams, one region for each that is reached."""

from __future__ import annotations

from bisect import bisect_right

from tidegate.options import Option
from tidegate.policies.interface.policy import Decision, PrefetchPolicy
from tidegate.policies.interface.visibility import Samples
from tidegate.policies.registries import prefetch
from tidegate.policies.structures.column import Marks

_NONE = -2  # no page, and no neighbour of one


@prefetch("rgp")
class RGP(PrefetchPolicy):
    """Prefetch whole regions ahead of streams in each object, no sooner than needed (ObservUVM,
    VI-D).

        object  ████████▓T▓T▓T......   █ used  ▓T prefetched, with a trigger page  . not yet

    Faults on neighbouring pages of an object, ``streak`` of them one after another, make it a
    stream for good. From then on a fault names the region behind it, a "next-region prefetcher,
    similar to next-line cache prefetchers". In each that comes, one page is left far as a trigger:
    when it is used, the next region is named that is yet to be prefetched; resident ones are passed
    over.

    User space answers an event after the driver has handled it, and ``setPrefetchRegion`` takes one
    address (Table I), as it does for victims "at every page fault/access counter event". So the
    driver takes a named region at the next event: one at a time, while blocks fault on.

    Open readings: how many neighbours make a stream, how far the first prefetch goes, and whether a
    region is taken at once.
    """

    sees = Samples(regions=100)
    in_driver = False
    ahead = Option(1, "regions behind one that faults in a stream that may be prefetched", least=1)
    streak = Option(3, "faults on neighbouring pages, one after another, of a stream", least=1)
    taken = Option(
        "next event",
        "when the driver takes a region that is named: one at the next event, or all at once",
        choices=("next event", "at once"),
    )

    def start(self) -> None:
        first, self._end = self.bounds()
        # by region, the number of its object
        self._object = [bisect_right(first, r) - 1 for r in range(self.memory.regions)]
        count = len(first)
        self._last = [_NONE] * count  # the page each object faulted in last
        self._run = [0] * count  # neighbours in a row, up to it
        self._streams = [0] * count  # 1: a stream
        self._triggers = Marks()
        self._asked = Marks()  # regions named and not evicted since
        self._waits = self.taken == "next event"
        self._named = _NONE  # the region that the driver takes next

    def bounds(self) -> tuple[list[int], list[int]]:
        """Return the first region of each object, and the one behind its last."""
        ppr = self.memory.geometry.pages_per_region
        first = [o.first_page // ppr for o in self.memory.objects]
        return first, [-(-(o.first_page + o.pages) // ppr) for o in self.memory.objects]

    def on_fault(self, region: int) -> None:
        self._take()
        here = self._object[region]
        if not self._streams[here]:
            self._follow(here, region)
        if self._streams[here]:
            for behind in range(region + 1, min(region + self.ahead + 1, self._end[here])):
                self._name(behind)

    def on_prefetch(self, region: int) -> None:
        if region in self._asked:
            self._triggers.add(region)
            self.memory.observe_prefetched(region)

    def on_notification(self, region: int) -> None:
        self._take()
        if region in self._triggers:
            self._triggers.discard(region)
            behind = range(region + 1, self._end[self._object[region]])
            following = next((r for r in behind if not self._has(r)), -1)
            if following >= 0:
                self._name(following)

    def on_eviction(self, region: int) -> None:
        self._triggers.discard(region)
        self._asked.discard(region)

    def decisions(self) -> list[Decision]:
        named = zip(self.memory.objects, self._streams, strict=True)
        streams = " ".join(o.name for o, stream in named if stream)
        return [Decision(f"streams: {streams or 'none'}", "their first faults")]

    def _follow(self, here: int, region: int) -> None:
        """Look for neighbours among the pages of this region that fault."""
        first = region * self.memory.geometry.pages_per_region
        for page in self.memory.faulted(region):
            step = first + page - self._last[here]
            self._last[here] = first + page
            self._run[here] = self._run[here] + 1 if step == 1 or step == -1 else 0
            if self._run[here] >= self.streak:
                self._streams[here] = 1

    def _has(self, region: int) -> bool:
        """Return whether a region is there, or was asked for."""
        return region in self._asked or self.memory.is_resident(region)

    def _name(self, region: int) -> None:
        """Name a region to prefetch, unless it is there or another one was named in this event."""
        if self._named == _NONE and not self._has(region):
            self._asked.add(region)
            self._named = region
            if not self._waits:
                self._take()

    def _take(self) -> None:
        """Let the driver take the region that was named."""
        if self._named != _NONE:
            pages = self.memory.geometry.pages_per_region
            self.memory.prefetch(self._named * pages, pages)
            self._named = _NONE
