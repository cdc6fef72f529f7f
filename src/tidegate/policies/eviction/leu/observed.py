"""Least expected use from faults and notifications alone, for a driver or live memory."""

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
