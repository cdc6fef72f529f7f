"""What a policy sees of live memory: the MemoryView of policies/interface/policy.py, and no more
than the policy declares.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import PolicyError
from tidegate.policies.interface.policy import Policy
from tidegate.policies.interface.visibility import Samples, TouchBits
from tidegate.trace.trace import Object

if TYPE_CHECKING:
    from tidegate.live.pager.engine import Engine


class _Observed:
    """The observed regions, asked one by one."""

    def __init__(self, engine: Engine):
        self._region = engine.region

    def __contains__(self, number: object) -> bool:
        region = self._region.get(number)  # type: ignore[call-overload]
        return region is not None and region.sampled != 0


class LiveMemory:
    """The ``memory`` of a policy that runs on live memory (a MemoryView)."""

    def __init__(self, engine: Engine, policy: Policy):
        self._engine, self._policy = engine, policy
        self.geometry, self.frames, self.observable = (
            engine.geometry,
            engine.frames,
            engine.observe_most,
        )
        self.shared = engine.shared
        # no compiler has seen the program, and all of it is one launch
        self.plan, self.launch = None, "live"
        self.observed: Container[int] = _Observed(engine)
        self.leaving = -1  # the region whose on_eviction is running
        self.read_objects = False  # whoever plans by objects must hear of new ones
        self.plan, self.launch = None, ""  # nobody knows what a live program will launch

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
            if region.resident and not region.pinned
        }

    def is_resident(self, region: int) -> bool:
        found = self._engine.region.get(region)
        return found is not None and found.resident != 0

    def is_pinned(self, region: int) -> bool:
        found = self._engine.region.get(region)
        return found is not None and (found.pinned or found.served == self._engine.turn)

    def faulted(self, region: int) -> NDArray[Any]:
        return np.flatnonzero(self._flags(region, self._engine.region[region].faulted))

    def near(self, region: int) -> NDArray[Any]:
        return self._flags(region, self._engine.region[region].near)

    def prefetched(self, region: int) -> NDArray[Any]:
        found = self._engine.region[region]
        return self._flags(region, found.to_prefetch)

    def touched(self, region: int) -> NDArray[Any]:
        if not isinstance(self._policy.sees, TouchBits):
            raise self._blind("touched", "TouchBits()")
        if region != self.leaving:
            raise PolicyError(
                f"{self._name}: touch bits of region {region} are handed over at its eviction, no earlier"
            )
        return self._flags(region, self._engine.mover.touched(region))

    # Nobody sees every touch

    @property
    def now(self) -> int:
        raise self._unseen("now")

    def last_touch(self, region: int) -> int:
        raise self._unseen("last_touch")

    def last_reference(self, page: int) -> int:
        raise self._unseen("last_reference")

    def next_touch(self, region: int) -> int:
        raise self._unseen("next_touch")

    # The verbs

    def prefetch(self, first_page: int, pages: int = 1) -> None:
        self._ask("prefetch", *self._range("prefetch", first_page, pages))

    def evict(self, region: int) -> None:
        if not self.is_resident(region):
            raise PolicyError(f"{self._name} asked to evict region {region}, which is not resident")
        self._ask("evict", region)

    def advise(self, first_page: int, pages: int, prefer: str | None) -> None:
        if prefer not in ("far", None):
            raise PolicyError(f"{self._name} advised '{prefer}'; expected 'far' or None")
        self._ask("advise", *self._range("advise", first_page, pages), prefer == "far")

    def observe_prefetched(self, region: int) -> None:
        self._need_samples("observe_prefetched")
        self._ask("observe", region)

    def count_remote(self, accesses: int) -> None:
        self._need_samples("count_remote")
        self._ask("count", accesses)

    def set_prefetch_threshold(self, percent: int) -> None:
        if not 0 <= percent <= 101:
            raise PolicyError(
                f"{self._name} set the prefetch threshold to {percent}; expected 0 to 101"
            )
        self._ask("threshold", percent)

    # Details

    @property
    def _name(self) -> str:
        return self._policy.name or type(self._policy).__name__

    def _flags(self, region: int, mask: int) -> NDArray[Any]:
        pages = self._engine.region[region].pages
        packed = np.frombuffer(mask.to_bytes(-(-self._engine.ppr // 8), "little"), np.uint8)
        return np.unpackbits(packed, count=pages, bitorder="little").astype(bool)

    def _range(self, verb: str, first: int, pages: int) -> tuple[int, int]:
        last = self.regions * self._engine.ppr
        if pages < 1 or first < 0 or first + pages > last:
            raise PolicyError(
                f"{self._name} asked to {verb} pages {first} to {first + pages - 1}; pages run from 0 to {last - 1}"
            )
        return first, pages

    def _ask(self, *request: Any) -> None:
        self._engine.requests.append(request)

    def _need_samples(self, verb: str) -> None:
        if not isinstance(self._policy.sees, Samples):
            raise self._blind(verb, "Samples()")

    def _blind(self, what: str, needed: str) -> PolicyError:
        return PolicyError(
            f"{self._name} reads memory.{what} but declares sees = {self._policy.sees}; it needs sees = {needed}"
        )

    def _unseen(self, what: str) -> PolicyError:
        return PolicyError(
            f"{self._name} reads memory.{what}, which live memory cannot know: it does not see every touch"
        )
