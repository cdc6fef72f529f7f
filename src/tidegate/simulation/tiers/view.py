"""What policies see of simulated tiers: a TierView for placements, a MemoryView for eviction
policies in place of CLOCK.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import PolicyError
from tidegate.policies.interface.memory_view import MemoryView
from tidegate.policies.interface.policy import EvictionPolicy, label
from tidegate.policies.interface.visibility import Everything, Samples
from tidegate.simulation.tiers.state import WATCHED, Tiers
from tidegate.trace.geometry import Geometry
from tidegate.trace.plan import Plan
from tidegate.trace.trace import Object, Trace


class SimulatedTiers:
    """The ``memory`` of a placement policy (a TierView)."""

    def __init__(self, tiers: Tiers, near: int, middle: int):
        self.near_pages, self.middle_pages, self.tiers = near, middle, tiers
        self._touches, self._middle_used = tiers.counts["touches"], tiers.counts["middle_used"]

    @property
    def now(self) -> int:
        return int(self._touches[0])

    @property
    def middle_used(self) -> int:
        return int(self._middle_used[0])

    @property
    def pairs(self) -> NDArray[np.int64]:
        return np.asarray(self.tiers.pairs[: 2 * self.tiers.sampling["filled"][0]]).reshape(-1, 2)

    def left(self, page: int) -> int:
        return int(self.tiers.history[self._existing(page), 0])

    def next_use(self, page: int) -> int:
        if not len(self.tiers.uses):
            raise PolicyError(
                "the placement must declare sees = Everything(future=True) to use memory.next_use"
            )
        return int(self.tiers.uses[self._existing(page)])

    def _existing(self, page: int) -> int:
        """Return a page's number; refuse one that NumPy would count from the end."""
        if 0 <= page < len(self.tiers.where):
            return page
        raise IndexError(f"page must be 0 to {len(self.tiers.where) - 1}, got {page}")


class _Observed:
    """Observed pages, for ``in``."""

    def __init__(self, tiers: Tiers):
        self._tiers = tiers

    def __contains__(self, page: object) -> bool:
        frame = self._tiers.where[page]
        return bool(frame >= 0 and self._tiers.frames[frame] & WATCHED)


class NearTier(MemoryView):
    """The ``memory`` of an eviction policy in the near tier, where each region is one page.

    GPU threads keep the time of every touch themselves (GMT 2.1.3), so a policy sees everything but
    the future. There is nothing to prefetch, to advise or to evict before its frame is needed.
    """

    def __init__(self, policy: EvictionPolicy, trace: Trace, tiers: Tiers, near: int):
        sees = policy.sees
        super().__init__(
            label(policy),
            sees,
            Geometry(trace.geometry.page, trace.geometry.page),
            near,
            sees.regions if isinstance(sees, Samples) else 0,
            {},
            shown=Everything(future=isinstance(sees, Everything) and sees.future),
        )
        self._trace, self._tiers, self.observed = trace, tiers, _Observed(tiers)
        self._touches, self._near_used = tiers.counts["touches"], tiers.counts["near_used"]

    @property
    def objects(self) -> tuple[Object, ...]:
        return self._trace.objects

    @property
    def regions(self) -> int:
        return len(self._tiers.where)

    @property
    def plan(self) -> Plan | None:
        return self._trace.plan

    @property
    def resident(self) -> set[int]:
        return set(self._tiers.held[: self._near_used[0]].tolist())

    def is_resident(self, region: int) -> bool:
        return bool(self._tiers.where[self._existing(region)] >= 0)

    def is_served(self, region: int) -> bool:
        return False

    def faulted(self, region: int) -> NDArray[Any]:
        return np.zeros(1, np.int64)

    def near(self, region: int) -> NDArray[Any]:
        return np.array([self.is_resident(region)])

    def prefetched(self, region: int) -> NDArray[Any]:
        return np.array([False])

    def _touched(self, region: int) -> NDArray[Any]:
        return np.array([True])

    def _now(self) -> int:
        return int(self._touches[0])

    def last_touch(self, region: int) -> int:
        return int(self._tiers.last[self._existing(region)]) or -1

    def page_touches(self, region: int) -> NDArray[Any]:
        return np.array([self.last_touch(region)])

    def last_reference(self, page: int) -> int:
        return int(self._tiers.reference[self._existing(page)])

    def last_toucher(self, region: int) -> int:
        return int(self._tiers.reference[self._existing(region)])

    def touch_count(self, region: int) -> int:
        return int(self._tiers.touched[self._existing(region)])

    def next_touch(self, region: int) -> int:
        return int(self._tiers.uses[self._existing(region)])

    def _request(self, verb: int, *words: int) -> None:
        raise PolicyError(
            f"{self._name} must not prefetch, evict or advise by itself on three tiers, "
            "which do not offer it; choose another eviction policy"
        )
