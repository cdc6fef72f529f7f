"""Least expected use by a list that is ordered at faults alone."""

from __future__ import annotations

from heapq import heappop, heappush

from tidegate.policies.eviction.leu.policy import LEU, _Known
from tidegate.policies.registries import eviction


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
