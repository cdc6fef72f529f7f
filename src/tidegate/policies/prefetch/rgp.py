"""Region-grain prefetch: ahead of streams, one region for each that is reached."""

from __future__ import annotations

from bisect import bisect_right

from tidegate.options import Option
from tidegate.policies.interface.policy import PrefetchPolicy
from tidegate.policies.interface.visibility import Samples
from tidegate.policies.registries import prefetch
from tidegate.policies.structures.marks import Marks


@prefetch("rgp")
class RGP(PrefetchPolicy):
    """Prefetch whole regions ahead of streams in each object, no sooner than needed (ObservUVM,
    VI-D).

        object  ████████▓T▓T▓T......   █ used  ▓T prefetched, with a trigger page  . not yet

    Faults that follow one another within an object make it a stream; then the next ``ahead``
    regions are prefetched. In each, one page is left far as a trigger: when it is used, the next
    region that was not prefetched yet follows.
    """

    sees = Samples(regions=100)
    in_driver = False
    ahead = Option(2, "regions prefetched when a stream is found", least=1)
    streak = Option(3, "faulting regions that must follow one another", least=1)

    def start(self) -> None:
        first, self._end = self.bounds()
        # by region, the number of its object
        self._object = [bisect_right(first, r) - 1 for r in range(self.memory.regions)]
        count = len(first)
        self._last = [-2] * count  # the region each object faulted in last
        self._run = [0] * count
        self._next = [0] * count  # the next region to prefetch
        self._triggers = Marks()
        self._asked = Marks()  # regions asked for and not evicted since

    def bounds(self) -> tuple[list[int], list[int]]:
        """Return the first region of each object, and the one behind its last."""
        ppr = self.memory.geometry.pages_per_region
        first = [o.first_page // ppr for o in self.memory.objects]
        return first, [-(-(o.first_page + o.pages) // ppr) for o in self.memory.objects]

    def on_fault(self, region: int) -> None:
        here = self._object[region]
        step = region - self._last[here]
        self._last[here] = region
        if step == 0:
            return
        self._run[here] = self._run[here] + 1 if step == 1 else 0
        if self._run[here] >= self.streak:
            if not region < self._next[here] <= region + self.ahead:
                self._next[here] = region + 1
            for _ in range(self.ahead):
                self._go_on(here)

    def on_prefetch(self, region: int) -> None:
        if region in self._asked:
            self._triggers.add(region)
            self.memory.observe_prefetched(region)

    def on_notification(self, region: int) -> None:
        if region in self._triggers:
            self._triggers.discard(region)
            self._go_on(self._object[region])

    def on_eviction(self, region: int) -> None:
        self._triggers.discard(region)
        self._asked.discard(region)

    def _go_on(self, here: int) -> None:
        """Prefetch the object's next region."""
        region = self._next[here]
        if region >= self._end[here]:
            return
        self._next[here] = region + 1
        if not self.memory.is_resident(region):
            self._asked.add(region)
            self.memory.prefetch(
                region * self.memory.geometry.pages_per_region,
                self.memory.geometry.pages_per_region,
            )
