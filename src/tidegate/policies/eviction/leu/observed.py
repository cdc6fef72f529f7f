"""Least expected use from faults and notifications alone: what a driver, or live memory, can have
of it.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from tidegate.options import Option
from tidegate.policies.eviction.leu.rimm import RIMM
from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.interface.visibility import Samples
from tidegate.policies.registries import eviction
from tidegate.trace.trace import Object


@eviction("leu-observed")
class LEUObserved(EvictionPolicy):
    """Evict the region that promises the fewest uses, where known uses are faults and
    notifications.

    The same RIMM as ``leu``'s, fed by what every mechanism relays. The clock counts known uses. No
    hardware says which instruction faulted, so the object a region belongs to stands for the
    reference: data of one array are used alike. The regions observed are those that would leave
    next: the lowest that is not observed yet.

    Our reading; the paper has a trace sampler on the GPU instead (Chen et al., MEMSYS'19, section
    3.3).
    """

    sees = Samples(regions=100)
    in_driver = False
    table = Option(
        256,
        "objects that have a distribution of their own; the coldest gives way",
        least=1,
        most=4096,
    )
    batch = Option(16, "reuses that are taken into the table at a time", least=1, most=1 << 20)

    def start(self) -> None:
        self._rimm = RIMM(self.table, self.batch)
        self._clock = 0
        self._last: dict[int, int] = {}  # when a region was used last, as far as known
        self._arriving: dict[int, None] = {}  # served in this turn, and not in the RIMM yet
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
        last, owner = self._last.get(region), self._owner(region)
        if last is None:
            self._rimm.saw(owner, 0, 0, self._clock)
        else:
            self._rimm.saw(owner, 1, self._clock - last, self._clock)
        if region in self._rimm:
            self._rimm.leave(region)
        self._arriving.pop(region, None)
        self._arriving[region] = None  # those served in this turn are the last ones
        self._last[region] = self._clock
        self._clock += 1

    def _settle(self) -> None:
        while self._arriving and not self.memory.is_served(region := next(iter(self._arriving))):
            del self._arriving[region]
            self._rimm.enter(region, self._owner(region), self._last[region], self._clock)

    def _owner(self, region: int) -> int:
        """The first region of the object this one belongs to.

        On live memory objects come and go.
        """
        if self.memory.objects is not self._objects:
            self._objects = self.memory.objects
            self._firsts = sorted(
                o.first_page // self.memory.geometry.pages_per_region for o in self._objects
            )
        return self._firsts[bisect_right(self._firsts, region) - 1]
