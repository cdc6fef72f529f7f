"""What a policy sees of the simulated memory: as much as it declared, and no more."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import PolicyError
from tidegate.policies.interface.events import (
    ASK_ADVISE,
    ASK_COUNT,
    ASK_EVICT,
    ASK_OBSERVE,
    ASK_PREFETCH,
    ASK_THRESHOLD,
    REQUEST_ROWS,
)
from tidegate.policies.interface.last_touch import BITS
from tidegate.policies.interface.page_flags import COMING, FAULTED, NEAR, TOUCHED, WANTED
from tidegate.policies.interface.policy import Policy, label
from tidegate.policies.interface.visibility import Everything, Samples, TouchBits
from tidegate.simulation.gpu.future import Future
from tidegate.simulation.gpu.memory import Memory, Rules
from tidegate.trace.plan import Plan
from tidegate.trace.profile import profile
from tidegate.trace.trace import Trace


class _Observed:
    """The observed regions, asked one by one."""

    def __init__(self, observed: NDArray[np.int16]):
        self._observed: Any = observed.data  # quicker than the array, one by one
        # whoever looks at many hands this method to itertools, which then calls nothing written in
        # Python
        vars(self)["__contains__"] = self._observed.__getitem__

    def __contains__(self, region: object) -> bool:
        return bool(self._observed[region] > 0)


class SimulatedMemory:
    """The ``memory`` of a policy that runs in the simulator (a MemoryView)."""

    def __init__(
        self,
        policy: Policy,
        trace: Trace,
        memory: Memory,
        rules: Rules,
        future: Future | None,
        shared: dict[str, Any],
    ):
        self.geometry, self.objects = trace.geometry, trace.objects
        self.frames, self.regions, self.observable = rules.room, trace.regions, rules.observe_most
        self._policy, self._m = policy, memory
        self._future = (
            future if isinstance(policy.sees, Everything) and policy.sees.future else None
        )
        self._ppr = trace.geometry.pages_per_region
        self._pages = trace.pages
        self._touches = memory.books["touches"]
        self._request_n = memory.books["request_n"]
        self._everything = isinstance(policy.sees, Everything)
        self._touch_bits = self._everything or isinstance(policy.sees, TouchBits)
        self.shared = shared
        self.launch = ""
        self._trace = trace
        self.leaving = -1  # the region whose on_eviction is running
        self.observed = _Observed(memory.observed)

    # What every policy sees

    @property
    def resident(self) -> set[int]:
        return set(np.flatnonzero(self._m.resident).tolist())

    def is_resident(self, region: int) -> bool:
        return bool(self._m.resident[region])

    def is_served(self, region: int) -> bool:
        return bool(self._m.served[region] == self._m.books["turn"][0])

    def faulted(self, region: int) -> NDArray[Any]:
        return np.flatnonzero(self._state(region) & FAULTED)

    def near(self, region: int) -> NDArray[Any]:
        return (self._state(region) & NEAR) != 0

    def prefetched(self, region: int) -> NDArray[Any]:
        state = self._state(region)
        return np.asarray(state & (WANTED | FAULTED | NEAR | COMING) == WANTED)

    @cached_property
    def plan(self) -> Plan:
        """What a compiler says of the program; where nobody compiled it, what its trace shows, at
        the cost of reading it.
        """
        return self._trace.plan or profile(self._trace)

    # What only some see

    def touched(self, region: int) -> NDArray[Any]:
        if not self._touch_bits:
            raise self._blind("touched", "TouchBits()")
        if not self._everything and region != self.leaving:
            raise PolicyError(
                f"{self._name}: touch bits of region {region} are handed over at its eviction, no earlier"
            )
        return (self._state(region) & TOUCHED) != 0

    @property
    def now(self) -> int:
        if not self._everything:
            raise self._blind("now", "Everything()")
        return int(self._touches[0])

    def last_touch(self, region: int) -> int:
        if not self._everything:
            raise self._blind("last_touch", "Everything()")
        return int(self._latest(region).max()) >> BITS

    def page_touches(self, region: int) -> NDArray[np.int64]:
        if not self._everything:
            raise self._blind("page_touches", "Everything()")
        return self._latest(region) >> BITS

    def last_reference(self, page: int) -> int:
        if not self._everything:
            raise self._blind("last_reference", "Everything()")
        return int(self._m.latest[page].astype(np.int16))

    def last_toucher(self, region: int) -> int:
        if not self._everything:
            raise self._blind("last_toucher", "Everything()")
        return int(self._latest(region).max().astype(np.int16))

    def touch_count(self, region: int) -> int:
        if not self._everything:
            raise self._blind("touch_count", "Everything()")
        return int(self._m.region_touches[region])

    def next_touch(self, region: int) -> int:
        if self._future is None:
            raise self._blind("next_touch", "Everything(future=True)")
        return int(self._future.when[self._future.first[region] + self._m.region_touches[region]])

    # The verbs

    def prefetch(self, first_page: int, pages: int = 1) -> None:
        self._ask(ASK_PREFETCH, *self._range("prefetch", first_page, pages))

    def evict(self, region: int) -> None:
        if not 0 <= region < self.regions or not self.is_resident(region):
            raise PolicyError(f"{self._name} asked to evict region {region}, which is not resident")
        self._ask(ASK_EVICT, region)

    def advise(self, first_page: int, pages: int, prefer: str | None) -> None:
        if prefer not in ("far", None):
            raise PolicyError(f"{self._name} advised '{prefer}'; expected 'far' or None")
        self._ask(ASK_ADVISE, *self._range("advise", first_page, pages), int(prefer == "far"))

    def observe_prefetched(self, region: int) -> None:
        self._need_samples("observe_prefetched")
        self._ask(ASK_OBSERVE, region)

    def count_remote(self, accesses: int) -> None:
        self._need_samples("count_remote")
        self._ask(ASK_COUNT, accesses)

    def set_prefetch_threshold(self, percent: int) -> None:
        if not 0 <= percent <= 101:
            raise PolicyError(
                f"{self._name} set the prefetch threshold to {percent}; expected 0 to 101"
            )
        self._ask(ASK_THRESHOLD, percent)

    # Details

    @property
    def _name(self) -> str:
        return label(self._policy)

    def _latest(self, region: int) -> NDArray[np.int64]:
        return self._m.latest[region * self._ppr : (region + 1) * self._ppr]

    def _state(self, region: int) -> NDArray[np.uint8]:
        base = region * self._ppr
        return self._m.page_state[base : base + int(self._m.region_pages[region])]

    def _range(self, verb: str, first: int, pages: int) -> tuple[int, int]:
        if pages < 1 or first < 0 or first + pages > self._pages:
            raise PolicyError(
                f"{self._name} asked to {verb} pages {first} to {first + pages - 1}; pages run from 0 to {self._pages - 1}"
            )
        return first, pages

    def _ask(self, *row: int) -> None:
        n = int(self._request_n[0])
        if n == REQUEST_ROWS:
            raise too_many_requests(self._policy)
        self._m.requests[n, : len(row)] = row
        self._request_n[0] = n + 1

    def _need_samples(self, verb: str) -> None:
        if not isinstance(self._policy.sees, Samples | Everything):
            raise self._blind(verb, "Samples()")

    def _blind(self, what: str, needed: str) -> PolicyError:
        return PolicyError(
            f"{self._name} reads memory.{what} but declares sees = {self._policy.sees}; it needs sees = {needed}"
        )


def too_many_requests(policy: Policy) -> PolicyError:
    """What becomes of a policy that asks for more than there are rows for."""
    return PolicyError(
        f"{label(policy)} asked for more than {REQUEST_ROWS} things in one call; ask for ranges instead"
    )
