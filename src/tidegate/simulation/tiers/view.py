"""What policies see of simulated tiers: a TierView for placements, a MemoryView for eviction
policies in place of CLOCK.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import PolicyError
from tidegate.simulation.tiers.state import FILLED, MIDDLE_USED, NEAR_USED, TOUCHES, WATCHED, Tiers
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Trace


class SimulatedTiers:
    """The ``memory`` of a placement policy (a TierView)."""

    def __init__(self, m: Tiers, near: int, middle: int):
        self.near_pages, self.middle_pages, self._m = near, middle, m

    @property
    def now(self) -> int:
        return int(self._m.count[TOUCHES])

    @property
    def middle_used(self) -> int:
        return int(self._m.count[MIDDLE_USED])

    @property
    def pairs(self) -> NDArray[np.int64]:
        return np.asarray(self._m.pairs[: 2 * self._m.sampling[FILLED]]).reshape(-1, 2)

    def left(self, page: int) -> int:
        return int(self._m.history[2 * page])

    def next_use(self, page: int) -> int:
        if not len(self._m.uses):
            raise PolicyError(
                "memory.next_use is the future, which needs sees = Everything(future=True)"
            )
        return int(self._m.uses[page])


class _Observed:
    def __init__(self, m: Tiers):
        self._m = m

    def __contains__(self, page: object) -> bool:
        frame = self._m.where[page]
        return bool(frame >= 0 and self._m.frames[frame] & WATCHED)


class NearTier:
    """The ``memory`` of an eviction policy in the near tier: a region is a page here, and all of it
    is touched.

    GPU threads keep the time of every touch themselves (GMT 2.1.3), so nothing is hidden from a
    policy but the future. There is nothing to prefetch, to advise or to evict without need.
    """

    def __init__(self, name: str, trace: Trace, m: Tiers, near: int, observable: int):
        self.geometry, self.objects = (
            Geometry(trace.geometry.page, trace.geometry.page),
            trace.objects,
        )
        self.frames, self.regions = near, len(m.where)
        self.observable, self.shared, self._m, self._name = observable, dict[str, Any](), m, name
        self.observed, self.plan, self.launch = _Observed(m), trace.plan, ""

    @property
    def resident(self) -> set[int]:
        return set(self._m.held[: self._m.count[NEAR_USED]].tolist())

    def is_resident(self, region: int) -> bool:
        return bool(self._m.where[region] >= 0)

    def is_served(self, region: int) -> bool:
        return False

    def faulted(self, region: int) -> NDArray[Any]:
        return np.zeros(1, np.int64)

    def near(self, region: int) -> NDArray[Any]:
        return np.array([self.is_resident(region)])

    def prefetched(self, region: int) -> NDArray[Any]:
        return np.array([False])

    def touched(self, region: int) -> NDArray[Any]:
        return np.array([True])

    @property
    def now(self) -> int:
        return int(self._m.count[TOUCHES])

    def last_touch(self, region: int) -> int:
        return int(self._m.last[region]) or -1

    def page_touches(self, region: int) -> NDArray[Any]:
        return np.array([self.last_touch(region)])

    def last_reference(self, page: int) -> int:
        return int(self._m.reference[page])

    def last_toucher(self, region: int) -> int:
        return int(self._m.reference[region])

    def touch_count(self, region: int) -> int:
        return int(self._m.touched[region])

    def next_touch(self, region: int) -> int:
        if not len(self._m.uses):
            raise PolicyError(
                f"{self._name} reads memory.next_touch but does not declare sees = Everything(future=True)"
            )
        return int(self._m.uses[region])

    def __getattr__(self, verb: str) -> Any:
        raise PolicyError(
            f"{self._name} asks for '{verb}', which three tiers do not offer; try another eviction policy"
        )
