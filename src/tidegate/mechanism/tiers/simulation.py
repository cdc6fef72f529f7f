"""Tiered: one run over three tiers, from a trace to balanced books."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import PolicyError, TidegateError
from tidegate.jit import jit
from tidegate.machine.machine import Machine
from tidegate.mechanism import events as near_events
from tidegate.mechanism.relay import Address
from tidegate.mechanism.tiers import engine
from tidegate.mechanism.tiers.events import EVENT_BITS, EVENT_NAMES, FAILED, PLACE, RETURN, SAMPLES, SPILL, TOUCH, VICTIM
from tidegate.mechanism.tiers.header import OWN, make_header
from tidegate.mechanism.tiers.service import Costs, costs_of
from tidegate.mechanism.tiers.state import (
    COMPUTE,
    COUNTS,
    IN_BUSY,
    IN_MIDDLE,
    LAUNCHING,
    NEAR,
    NOW,
    OUT_BUSY,
    READ_BUSY,
    WAIT_DRIVER,
    WAIT_HOST,
    WAIT_STORAGE,
    WRITE_BUSY,
    Tiers,
    make_tiers,
    refer,
)
from tidegate.mechanism.tiers.view import NearTier, SimulatedTiers
from tidegate.policies.policy import EvictionPolicy, Policy
from tidegate.policies.sees import Everything, Samples
from tidegate.policies.tier_policy import TierPolicy
from tidegate.trace.trace import Trace, check_segment

NEVER = 2**31 - 1  # when a page is touched next that is not touched again
MOST_STAYS = 64  # candidates that may stay before one has to go; the paper does not say
_C_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_ANSWERED = (PLACE, VICTIM, SPILL)


class Tiered:
    """Three tiers of ``near`` and ``middle`` pages and an SSD, set up for a trace. ``eviction``: None is CLOCK."""

    def __init__(
        self, trace: Trace, machine: Machine, near: int, middle: int, placement: TierPolicy,
        eviction: EvictionPolicy | None = None, *, service: str | None = None, shared: bool = True, read_ahead: bool = False,
        most_stays: int = MOST_STAYS, compiled: bool = True,
    ):  # fmt: skip
        if trace.geometry.pages_per_region != 1:
            raise TidegateError(f"tiers move single pages; expected a geometry such as 64KiB/64KiB, not {trace.geometry}")
        if near < 1:
            raise TidegateError(f"near memory of {near} pages holds nothing; give it at least one page")
        if middle < 0:
            raise TidegateError(f"a middle of {middle} pages is none; expected at least 0")
        self.trace, self.machine, self.near = trace, machine, near
        self.middle = middle if placement.keeps_middle else 0
        self.placement, self.eviction = placement, eviction
        self.service = service or placement.service
        self.settings = {"service": self.service, "shared": shared, "read_ahead": read_ahead, "most_stays": most_stays}
        self.costs: Costs = costs_of(machine, trace.geometry.page, self.service, self.middle > 0, shared, read_ahead)
        self._sees_future = any(isinstance(p.sees, Everything) and p.sees.future for p in (placement, eviction) if p)
        batch, wanted, every = placement.sampling(near)
        self.m: Tiers = make_tiers(trace.pages, near, machine.near.slots, batch, wanted, every, self._sees_future)
        self._callers = self._attach(compiled)
        self.rules = engine.Rules(
            near, self.middle, placement.makes_room, most_stays, eviction is None, _defines(placement, VICTIM),
            _defines(placement, RETURN), _defines(placement, TOUCH),
            eviction is not None and type(eviction).observe is not EvictionPolicy.observe,
        )  # fmt: skip

    def _attach(self, compiled: bool) -> tuple[Any, Any]:
        self.placement.attach(SimulatedTiers(self.m, self.near, self.middle))  # type: ignore[arg-type]
        self.placement.start()
        placement: Any
        if compiled and self.placement.compiled is not None:
            placement = _Twin(self.placement, self.m, self.near, self.middle)
        else:
            placement = _PlacementCaller(self.placement)
        if self.eviction is None:
            return placement, placement  # never called, but the walk is compiled for two
        observable = self.eviction.sees.regions if isinstance(self.eviction.sees, Samples) else 0
        self.eviction.attach(NearTier(self.eviction.name, self.trace, self.m, self.near, observable))  # type: ignore[arg-type]
        self.eviction.start()
        return placement, _EvictionCaller(self.eviction)

    def run(self, progress: Callable[[int], None] = lambda touches: None) -> None:
        """Walk through the trace, then check the books."""
        placement, eviction = self._callers
        calls = engine.Calls(placement.address, placement.own, eviction.address, eviction.own)
        uses, done, m = self._uses(), 0, refer(self.m)
        nothing = np.zeros(0, np.int32)
        for launch in self.trace.launches():
            engine.launch(m, self.costs)
            for s in launch.segments:
                check_segment(s, self.trace)
                own = uses[done : done + s.touches] if len(uses) else nothing
                stopped = engine.walk(m, self.rules, calls, self.costs, s.page, s.write, s.bytes, own)
                self._raise(int(stopped))
                done += s.touches
                progress(s.touches)
        engine.finish(m)
        if isinstance(placement, _Twin):
            self.placement.take_back(placement.words)
        self.check()

    def _uses(self) -> NDArray[np.int32]:
        """When the page of every touch is touched next, counted from 1; nothing unless the future is seen."""
        if not self._sees_future:
            return np.zeros(0, np.int32)
        parts = [s.page for launch in self.trace.launches() for s in launch.segments]
        uses = np.concatenate(parts) if parts else np.zeros(0, np.int32)
        if len(uses) >= NEVER:
            raise TidegateError(f"{len(uses):,} touches are too many to look ahead over; at most {NEVER - 1:,} are possible")
        _next_uses(uses, np.full(self.trace.pages, NEVER, np.int32))
        return uses

    def _raise(self, stopped: int) -> None:
        for caller in self._callers:
            if caller.failure is not None:
                raise caller.failure
        if stopped != engine.FINISHED:
            wrong = {
                engine.BAD_PLACE: "placed a page where there is no tier; expected STAY, MIDDLE or FAR",
                engine.BAD_SPILL: "named a page to leave the middle that is not there",
            }.get(stopped, "named a victim that is not in near memory")
            name = self.eviction.name if self.eviction and stopped == engine.BAD_VICTIM else self.placement.name
            raise PolicyError(f"{name or type(self.placement).__name__} {wrong}")

    # What came of it

    @property
    def counts(self) -> dict[str, int]:
        return dict(zip(COUNTS, self.m.count.tolist(), strict=True))

    @property
    def time(self) -> float:
        return float(self.m.clock[NOW])

    @property
    def parts(self) -> dict[str, float]:
        """Time by what it went on. Waiting for the SSD is split by how long it read and wrote, for the host by direction."""
        c = self.m.clock
        reading = c[READ_BUSY] / ((c[READ_BUSY] + c[WRITE_BUSY]) or 1.0)
        inward = c[IN_BUSY] / ((c[IN_BUSY] + c[OUT_BUSY]) or 1.0)
        found = {
            "compute": c[COMPUTE] + c[LAUNCHING],
            "storage_read": c[WAIT_STORAGE] * reading, "storage_write": c[WAIT_STORAGE] * (1 - reading),
            "transfer_in": c[WAIT_HOST] * inward, "transfer_out": c[WAIT_HOST] * (1 - inward),
            "fault_handling": c[WAIT_DRIVER],
        }  # fmt: skip
        return {part: float(ns) for part, ns in found.items()}

    def check(self) -> None:
        """The books balance, or this is a bug."""
        c, flags = self.counts, self.m.flags
        near, middle = int((flags & NEAR).astype(bool).sum()), int((flags & IN_MIDDLE).astype(bool).sum())
        assert near == c["near_used"] <= self.near, "near frames within capacity"
        assert middle == c["middle_used"] <= self.middle, "middle pages within capacity"
        assert not (flags & NEAR).astype(bool)[(flags & IN_MIDDLE).astype(bool)].any(), "a page is in one tier"
        assert c["touches"] == c["hits"] + c["middle_hits"] + c["far_reads"], "every touch hits or misses"
        assert c["middle_hits"] + c["far_reads"] == c["evictions"] + near, "what came near left or is there"
        assert c["to_middle"] == c["middle_hits"] + c["middle_spilled"] + middle, "what went to the middle left or is there"
        assert c["evictions"] == c["to_middle"] + c["to_far"], "every victim went somewhere"
        assert c["to_far"] == c["near_written"] + c["dropped"], "written or dropped"
        assert abs(self.time - sum(self.parts.values())) <= 1e-9 * max(1.0, self.time), "time is the sum of its parts"
        if self.eviction is not None:
            self.eviction.finished()
        self.placement.finished()


class _Twin:
    """Calls a placement's compiled twin."""

    failure: BaseException | None = None

    def __init__(self, policy: TierPolicy, m: Tiers, near: int, middle: int):
        assert policy.compiled is not None
        self._data = make_header(m, near, middle, policy.own_words(len(m.flags), near, middle))
        self.words = self._data[OWN:]
        self.own = self._data.ctypes.data
        self.address = Address(policy.compiled.function.address, policy.compiled.function)


class _Caller:
    """Calls a Python policy. What it raises is kept, and the walk is told that it failed."""

    def __init__(self, handlers: dict[int, Callable[[int], Any]], answered: tuple[int, ...]):
        self.failure: BaseException | None = None
        self.own = 0

        def call(own: int, event: int) -> int:
            try:
                kind = event & ((1 << EVENT_BITS) - 1)
                found = handlers[kind](event >> EVENT_BITS)
                return index(found) if kind in answered and found is not None else FAILED if kind in answered else 0
            except BaseException as error:
                self.failure = error
                return FAILED

        self._c = _C_SIGNATURE(call)
        self.address = Address(ctypes.cast(self._c, ctypes.c_void_p).value or 0, self._c)


class _PlacementCaller(_Caller):
    def __init__(self, policy: Any):
        handlers: dict[int, Callable[[int], Any]] = {
            event: getattr(policy, name) for event, name in EVENT_NAMES.items() if hasattr(policy, name)
        }
        for event in (VICTIM, SPILL):
            if event in handlers:
                handlers[event] = lambda page, ask=handlers[event]: ask()  # type: ignore[call-arg, misc]
        samples = policy.on_samples
        handlers[SAMPLES] = lambda page: samples()
        super().__init__(handlers, _ANSWERED)


class _EvictionCaller(_Caller):
    def __init__(self, policy: EvictionPolicy):
        handlers: dict[int, Callable[[int], Any]] = {
            near_events.VICTIM: lambda page: policy.victim(),
            near_events.FAULT: policy.on_fault,
            near_events.EVICTION: policy.on_eviction,
            near_events.NOTIFICATION: policy.on_notification,
            near_events.OBSERVE: lambda page: policy.observe(),
        }
        super().__init__(handlers, (near_events.VICTIM, near_events.OBSERVE))


def _defines(policy: Policy, event: int) -> bool:
    """Does this policy's class have a method of its own for the event?"""
    name = EVENT_NAMES[event]
    return getattr(type(policy), name, None) is not getattr(TierPolicy, name, None)


@jit
def _next_uses(pages: Any, seen: Any) -> None:
    """Write over every page the number of its next touch, from 1."""
    for i in range(len(pages) - 1, -1, -1):
        page = pages[i]
        pages[i] = seen[page]
        seen[page] = i + 1
