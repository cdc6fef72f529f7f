"""Sequential-local eviction."""

from __future__ import annotations

from tidegate import units
from tidegate.options import Option
from tidegate.policies.eviction.lrm import LRM
from tidegate.policies.registries import eviction


@eviction("sle")
class SLe(LRM):
    """Evict the aligned block of 64 KB with the least recently migrated region (Ganguly et al.,
    ISCA'19).

    The counterpart of sequential-local prefetch: a block comes and leaves as a whole. A region of
    64 KB or more is a block by itself, and this is ``lrm``.
    """

    block = Option(units.size("64KiB"), "size of a block", parse=units.size, least=1)

    def start(self) -> None:
        self._together = max(1, self.block // self.memory.geometry.region)
        self._leading = False

    def on_eviction(self, region: int) -> None:
        super().on_eviction(region)
        if self._together > 1 and not self._leading:
            self._leading = True  # their evictions evict no others
            first = region - region % self._together
            for other in range(first, min(first + self._together, self.memory.regions)):
                if other in self.order and not self.memory.is_served(other):
                    self.memory.evict(other)
            self._leading = False
