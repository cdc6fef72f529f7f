"""What a policy sees of live memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import PolicyError
from tidegate.policies.interface.memory_view import MemoryView
from tidegate.policies.interface.policy import Policy, label
from tidegate.trace.trace import Object

if TYPE_CHECKING:
    from tidegate.live.pager.engine import Engine


class _Observed:
    """Observed regions, for ``in``."""

    def __init__(self, engine: Engine):
        self._region = engine.region

    def __contains__(self, number: object) -> bool:
        region = self._region.get(number)  # type: ignore[call-overload]
        return region is not None and region.sampled != 0


class LiveMemory(MemoryView):
    """The ``memory`` of a policy that runs on live memory."""

    plan = None  # launches of a live program are not known

    def __init__(self, engine: Engine, policy: Policy):
        super().__init__(
            label(policy),
            policy.sees,
            engine.geometry,
            engine.frames,
            engine.observe_most,
            engine.shared,
        )
        self._engine, self.observed = engine, _Observed(engine)
        self.read_objects = False  # a policy that plans by objects starts anew when they change

    @property
    def objects(self) -> tuple[Object, ...]:
        self.read_objects = True
        return self._engine.objects

    @property
    def regions(self) -> int:
        return self._engine.regions

    @property
    def resident(self) -> set[int]:
        return {
            number
            for number, region in self._engine.region.items()
            if region.has_frame and not region.pinned
        }

    def is_resident(self, region: int) -> bool:
        found = self._engine.region.get(region)
        return found is not None and found.has_frame

    def is_served(self, region: int) -> bool:
        """Return whether the region is served, or a thread waits for it that may not have run."""
        found, engine = self._engine.region.get(region), self._engine
        if found is None:
            return False
        return found.pinned or found.served == engine.turn or region in engine.threads.held

    def faulted(self, region: int) -> NDArray[Any]:
        return np.flatnonzero(self._flags(region, self._engine.region[region].faulted))

    def near(self, region: int) -> NDArray[Any]:
        return self._flags(region, self._engine.region[region].near)

    def prefetched(self, region: int) -> NDArray[Any]:
        return self._flags(region, self._engine.region[region].to_prefetch)

    def _touched(self, region: int) -> NDArray[Any]:
        return self._flags(region, self._engine.mover.touched(region))

    def _accesses(self) -> int:
        return self._engine.accesses

    def discard(self, region: int) -> None:
        """Refuse: only the program may give up its data."""
        raise PolicyError(
            f"{self._name} must not discard region {region} of live memory: only its program can "
            "say that data are dead; evict it"
        )

    def count_remote(self, accesses: int, pages: int = 0, each: int = 0) -> None:
        """Count by regions only."""
        if each:
            raise PolicyError(
                f"{self._name} must be notified of regions on live memory, not of each page"
            )
        if pages not in (0, self.geometry.pages_per_region):
            raise PolicyError(
                f"{self._name} must count by regions on live memory, got granules of {pages} pages"
            )
        super().count_remote(accesses)

    def _request(self, verb: int, *words: int) -> None:
        self._engine.requests.append((verb, *words))

    def _flags(self, region: int, mask: int) -> NDArray[Any]:
        pages = self._engine.region[region].pages
        packed = np.frombuffer(mask.to_bytes(-(-self._engine.ppr // 8), "little"), np.uint8)
        return np.unpackbits(packed, count=pages, bitorder="little").astype(bool)
