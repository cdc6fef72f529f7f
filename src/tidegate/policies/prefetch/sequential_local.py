"""Sequential-local prefetch."""

from __future__ import annotations

from tidegate import units
from tidegate.options import Option
from tidegate.policies.interface.policy import PrefetchPolicy
from tidegate.policies.registries import prefetch


@prefetch("sequential-local")
class SequentialLocal(PrefetchPolicy):
    """Fetch the whole aligned 64 KB around every fault, and never stop (Zheng et al., HPCA'16;
    Ganguly et al., ISCA'19).

    It is the prefetcher of CPPE's baseline; its blocks are CPPE's chunks of 16 pages.
    """

    block = Option(units.size("64KiB"), "size of a block", parse=units.size, least=1)

    def start(self) -> None:
        geometry = self.memory.geometry
        self._per_region = geometry.pages_per_region
        self._together = max(1, min(self.block // geometry.page, self._per_region))

    def on_fault(self, region: int) -> None:
        base, last = region * self._per_region, -1
        for page in self.memory.faulted(region):
            block = int(page) // self._together
            if block != last:
                self.memory.prefetch(base + block * self._together, self._together)
            last = block
