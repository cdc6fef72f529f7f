"""Least expected use from less: from faults alone, or from faults and notifications, as a driver or
live memory has them.
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import heappop, heappush
from typing import Any

from tidegate.options import Option
from tidegate.policies.eviction.leu.policy import LEU, _Known
from tidegate.policies.eviction.leu.rimm import RIMM
from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.interface.visibility import Samples
from tidegate.policies.registries import eviction
from tidegate.trace.trace import Object


@eviction("leu-at-fault")
class LEUAtFault(LEU):
    """Evict the region whose priority was lowest when it faulted (Chen et al., MEMSYS'19, 3.3).

    The paper computes a page's priority when it faults and sends it to the priority list; nothing
    is said of updates. So a region keeps the priority of its access site at TESLA 0 until it leaves
    or faults again, of equals the first leaves, and uses in between change the table alone. ``leu``
    is the other reading: priorities as they are when a victim is chosen.
    """

    def start(self) -> None:
        super().start()
        self._list: list[tuple[float, int, int]] = []  # priority, number of the entry, region
        self._entry: dict[int, int] = {}  # the number of a region's valid entry
        self._entries = 0

    def on_eviction(self, region: int) -> None:
        if region in self._known:
            self._touched_since(region)  # for the table
        super().on_eviction(region)
        self._entry.pop(region, None)

    def victim(self) -> int:
        self._settle_arrivals()
        while self._list:
            _, number, region = self._list[0]
            if self._entry.get(region) == number:
                return region
            heappop(self._list)
        return next(iter(self._arriving))  # all regions were served in this turn

    def on_fault(self, region: int) -> None:
        super().on_fault(region)
        self._entry.pop(region, None)

    def _know(self, region: int, known: _Known) -> None:
        super()._know(region, known)
        if region not in self._entry:
            table = self._rimm.table
            priority, _ = table.at(table.place(known.last.reference)).priority(0)
            self._entries += 1
            self._entry[region] = self._entries
            heappush(self._list, (priority, self._entries, region))


@eviction("leu-observed")
class LEUObserved(EvictionPolicy):
    """Evict the region with the fewest expected uses, where known uses are faults and
    notifications.

    The same RIMM as ``leu``'s, with what every mechanism relays. The clock counts known uses. No
    hardware shows which instruction faulted, so the object of a region replaces the access site:
    data of one array are used alike. Observed regions are those next to leave: the lowest that is
    not observed yet.

    Our reading; the paper has a trace sampler on the GPU instead (Chen et al., MEMSYS'19, section
    3.3).
    """

    sees = Samples(regions=100)
    in_driver = False
    table = Option(256, "objects with a distribution; the coldest is replaced", least=1, most=4096)
    batch = Option(16, "reuses that are counted at a time", least=1, most=1 << 20)

    forget = Option(
        0,
        "known uses of an object after which its counts are halved; 0: it never forgets",
        least=0,
        most=1 << 40,
    )

    def start(self) -> None:
        self._rimm = RIMM(self.table, self.batch, self.forget)
        self._clock = 0
        self._last: dict[int, int] = {}  # time of a region's last known use
        self._arriving: dict[int, None] = {}  # served in this turn, not in the RIMM yet
        self._objects: tuple[Object, ...] = ()
        self._firsts: list[int] = []  # the first region of each object

    def on_fault(self, region: int) -> None:
        self._used(region)

    def on_notification(self, region: int) -> None:
        self._used(region)

    def on_eviction(self, region: int) -> None:
        if region in self._arriving:
            del self._arriving[region]
        else:
            self._rimm.leave(region)

    def victim(self) -> int:
        self._settle()
        region = self._rimm.lowest(self._clock)
        return next(iter(self._arriving)) if region is None else region

    def observe(self) -> int | None:
        self._settle()
        return self._rimm.lowest(self._clock, unless=self.observed)

    def finished(self) -> None:
        assert len(self._rimm) + len(self._arriving) == len(self.resident)
        assert all(region in self._rimm or region in self._arriving for region in self.resident)

    def report(self) -> dict[str, Any]:
        return {
            "references": len(self._rimm.table.entries),
            "references replaced": self._rimm.table.replaced,
        }

    def _used(self, region: int) -> None:
        last = self._last.get(region)
        reuse = (0, 0) if last is None else (1, self._clock - last)
        self._rimm.saw(self._owner(region), *reuse, self._clock)
        if region in self._rimm:
            self._rimm.leave(region)
        self._arriving.pop(region, None)
        self._arriving[region] = None  # regions served in this turn are the last ones
        self._last[region] = self._clock
        self._clock += 1

    def _settle(self) -> None:
        while self._arriving and not self.memory.is_served(region := next(iter(self._arriving))):
            del self._arriving[region]
            self._rimm.enter(region, self._owner(region), self._last[region], self._clock)

    def _owner(self, region: int) -> int:
        """Return the first region of the object that this one belongs to."""
        if self.memory.objects is not self._objects:  # they change in live memory
            self._objects, pages = self.memory.objects, self.memory.geometry.pages_per_region
            self._firsts = sorted(o.first_page // pages for o in self._objects)
        return self._firsts[bisect_right(self._firsts, region) - 1]
