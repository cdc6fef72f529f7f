"""What a policy sees of the simulated memory."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import PolicyError
from tidegate.machine.machine import Machine
from tidegate.policies.interface.events import REQUEST_ROWS
from tidegate.policies.interface.forecast import Costs, Forecast
from tidegate.policies.interface.memory_view import MemoryView
from tidegate.policies.interface.page_flags import BITS, COMING, FAULTED, NEAR, TOUCHED, WANTED
from tidegate.policies.interface.policy import Policy, label
from tidegate.simulation.gpu.forecast import forecast
from tidegate.simulation.gpu.future import Future
from tidegate.simulation.gpu.memory import Memory, RunConstants
from tidegate.trace.plan import Plan
from tidegate.trace.profile import profile
from tidegate.trace.trace import Object, Trace


class _Observed:
    """Observed regions, for ``in``."""

    def __init__(self, observed: NDArray[np.int16]):
        self._observed: Any = observed.data  # quicker than the array, one by one
        # a loop in itertools then calls nothing written in Python
        vars(self)["__contains__"] = self._observed.__getitem__

    def __contains__(self, region: object) -> bool:
        return bool(self._observed[region] > 0)


class SimulatedMemory(MemoryView):
    """The ``memory`` of a policy that runs in the simulator."""

    def __init__(
        self,
        policy: Policy,
        trace: Trace,
        machine: Machine,
        memory: Memory,
        constants: RunConstants,
        future: Future | None,
        shared: dict[str, Any],
    ):
        super().__init__(
            label(policy),
            policy.sees,
            trace.geometry,
            constants.room,
            constants.observe_most,
            shared,
        )
        self._policy, self._trace, self._m, self._future = policy, trace, memory, future
        self._machine, self._constants = machine, constants
        self._ppr, self._regions = trace.geometry.pages_per_region, trace.regions
        self._touches = memory.books["touches"]
        self._request_n = memory.books["request_n"]
        self.observed = _Observed(memory.observed)

    @property
    def objects(self) -> tuple[Object, ...]:
        return self._trace.objects

    @property
    def regions(self) -> int:
        return self._regions

    @cached_property
    def plan(self) -> Plan:
        """The compiler's plan; without one, a profile of the trace, at the cost of reading it."""
        return self._trace.plan or profile(self._trace)

    @cached_property
    def forecast(self) -> Forecast:
        """What each launch uses, piece by piece, at the cost of reading the trace."""
        return forecast(self._trace, self._machine)

    @cached_property
    def costs(self) -> Costs:
        c = self._constants
        way_in = c.region_overhead + c.run_overhead + c.pages_per_region * c.in_per_page
        return Costs(
            fault=c.batch_overhead,
            observation=c.sample + c.out_per_page + c.notification + c.run_overhead + c.in_per_page,
            bring=way_in + c.pages_per_region * c.unmap_per_page,
            fetch=way_in + c.pages_per_region * c.unmap_prefetched,
            send=c.evict_overhead + c.pages_per_region * c.out_per_page,
            remote=c.page * c.remote_per_byte,
        )

    @property
    def resident(self) -> set[int]:
        return set(np.flatnonzero(self._m.resident).tolist())

    def is_resident(self, region: int) -> bool:
        return bool(self._m.resident[self._existing(region)])

    def is_served(self, region: int) -> bool:
        return bool(self._m.served[self._existing(region)] == self._m.books["turn"][0])

    def faulted(self, region: int) -> NDArray[Any]:
        return np.flatnonzero(self._state(region) & FAULTED)

    def near(self, region: int) -> NDArray[Any]:
        return (self._state(region) & NEAR) != 0

    def prefetched(self, region: int) -> NDArray[Any]:
        state = self._state(region)
        return np.asarray(state & (WANTED | FAULTED | NEAR | COMING) == WANTED)

    def _touched(self, region: int) -> NDArray[Any]:
        return (self._state(region) & TOUCHED) != 0

    def _accesses(self) -> int:
        return int(self._m.books["accesses"][0])

    def _now(self) -> int:
        return int(self._touches[0])

    def last_touch(self, region: int) -> int:
        return int(self._latest(region).max()) >> BITS

    def page_touches(self, region: int) -> NDArray[np.int64]:
        return self._latest(region) >> BITS

    def last_reference(self, page: int) -> int:
        self._existing(page // self._ppr)
        return int(self._m.latest[page].astype(np.int16))

    def last_toucher(self, region: int) -> int:
        return int(self._latest(region).max().astype(np.int16))

    def touch_count(self, region: int) -> int:
        return int(self._m.region_touches[self._existing(region)])

    def next_touch(self, region: int) -> int:
        assert self._future is not None
        self._existing(region)
        return int(self._future.when[self._future.first[region] + self._m.region_touches[region]])

    def _latest(self, region: int) -> NDArray[np.int64]:
        self._existing(region)
        return self._m.latest[region * self._ppr : (region + 1) * self._ppr]

    def _state(self, region: int) -> NDArray[np.uint8]:
        base = self._existing(region) * self._ppr
        return self._m.page_state[base : base + int(self._m.region_pages[region])]

    def _request(self, verb: int, *words: int) -> None:
        n = int(self._request_n[0])
        if n == REQUEST_ROWS:
            raise too_many_requests(self._policy)
        self._m.requests[n] = (verb, *words, 0, 0, 0)[: self._m.requests.shape[1]]
        self._request_n[0] = n + 1


def too_many_requests(policy: Policy) -> PolicyError:
    """Return the error of a policy that leaves more requests than there are rows."""
    return PolicyError(
        f"{label(policy)} must leave at most {REQUEST_ROWS} requests in one call, got more; "
        "request ranges of pages instead"
    )
