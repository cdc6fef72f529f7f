"""The relay: how the compiled mechanism calls a policy.

A policy is called through one C function, ``int64 (own, event)``. For a Python policy that function
is an adapter around the object's methods; for a compiled twin it is the twin itself and ``own`` the
address of its arrays. The mechanism knows both by their addresses (``native.call_at``), so one
compiled engine serves them all and a new Python policy needs no compilation.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from operator import index
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import PolicyError
from tidegate.policies.interface.events import (
    EVENT_BITS,
    EVENT_NAMES,
    EVICTION,
    FAILED,
    FAULT,
    LAUNCH,
    OBSERVE,
    PREFETCH,
    VICTIM,
)
from tidegate.policies.interface.header import OVERFULL, OWN, make_header
from tidegate.policies.interface.policy import EvictionPolicy, Policy
from tidegate.policies.interface.visibility import TouchBits
from tidegate.simulation.gpu.future import Future
from tidegate.simulation.gpu.memory import Memory
from tidegate.simulation.gpu.view import too_many_requests

_C_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_KINDS = 1 << EVENT_BITS


class Relay(NamedTuple):
    """The addresses at which the compiled code calls the policies.

    Their callers keep what is there alive.
    """

    eviction: int
    prefetch: int
    placement: int


class WrongAnswer(TypeError):
    """What was answered, and what was expected."""


_UNASKED = object()


class Caller:
    """Calls a Python policy.

    What it raises is kept in ``failure`` and reported to the engine as FAILED.
    """

    def __init__(self, policy: Policy, books: NDArray[Any]):
        self.failure: BaseException | None = None
        self.own = 0
        self.wants = _wants(policy)
        handlers: dict[int, Callable[[int], Any]] = {
            e: getattr(policy, EVENT_NAMES[e]) for e in np.flatnonzero(self.wants).tolist()
        }
        if EVICTION in handlers and isinstance(policy.sees, TouchBits):
            handlers[EVICTION] = _showing_touch_bits(policy)
        victim, observe = getattr(policy, "victim", None), getattr(policy, "observe", None)
        request_n = books["request_n"]

        def call(own: int, event: int) -> int:
            region = _UNASKED
            try:
                if event == VICTIM:
                    region = victim()  # type: ignore[misc]
                    return index(region)  # type: ignore[arg-type]
                if event == OBSERVE:
                    region = observe()  # type: ignore[misc]
                    return FAILED if region is None else index(region)  # type: ignore[arg-type]
                handlers[event & (_KINDS - 1)](event >> EVENT_BITS)
                return 0
            except BaseException as error:
                wrong = region is not _UNASKED and not isinstance(error, KeyboardInterrupt)
                self.failure = (
                    WrongAnswer(f"{region!r}; expected the number of a resident region")
                    if wrong
                    else error
                )
                request_n[0] = -1
                return FAILED

        self._c = _C_SIGNATURE(call)
        self.address = ctypes.cast(self._c, ctypes.c_void_p).value or 0


class CompiledCaller:
    """Calls a policy's compiled twin: nothing stands in between.

    Policies it is made of have callers of their own.
    """

    def __init__(self, policy: Policy, memory: Memory, frames: int, future: Future | None):
        regions, pages = len(memory.resident), len(memory.page_state)
        self._policy = policy
        self._parts = [CompiledCaller(part, memory, frames, future) for part in policy.parts]
        self._table = np.array([part.row for part in self._parts], np.int64)
        words = policy.compiled.prepare(policy, regions, pages // regions)
        self._data = make_header(
            memory, regions, pages // regions, frames, future, self._table, words
        )
        self.wants = _wants(policy)
        self.own = self._data.ctypes.data
        self.address = policy.compiled.function.address

    @property
    def row(self) -> tuple[int, int, int]:
        """How the twin of a policy that this one is part of calls it: see header.py."""
        return self.address, self.own, sum(1 << int(e) for e in np.flatnonzero(self.wants))

    @property
    def failure(self) -> PolicyError | None:
        """What would have been raised, had it been the Python class."""
        return too_many_requests(self._policy) if self._overfull else None

    @property
    def _overfull(self) -> bool:
        return bool(self._data[OVERFULL]) or any(part._overfull for part in self._parts)

    def finished(self) -> None:
        """Hand the policy, and those it is made of, what their twins have to report."""
        for part in self._parts:
            part.finished()
        self._policy.compiled.results(self._policy, self._data[OWN:])


def _showing_touch_bits(policy: Policy) -> Callable[[int], None]:
    """The policy's on_eviction, with the leaving region's touch bits handed over for as long as it
    runs.
    """

    def on_eviction(region: int) -> None:
        policy.memory.leaving = region
        policy.on_eviction(region)
        policy.memory.leaving = -1

    return on_eviction


def _wants(policy: Policy) -> NDArray[np.uint8]:
    """The events whose methods this policy's class really defines."""

    def defines(event: int) -> bool:
        name = EVENT_NAMES[event]
        inherited = (getattr(Policy, name, None), getattr(EvictionPolicy, name, None))
        return getattr(type(policy), name, None) not in inherited

    wants = np.zeros(_KINDS, np.uint8)
    for event in EVENT_NAMES:
        wants[event] = defines(event)
    # its on_prefetch is its on_fault, unless it says otherwise
    if isinstance(policy, EvictionPolicy):
        wants[PREFETCH] = wants[PREFETCH] or wants[FAULT]
    # a launch that nobody wants to hear of does not wait for the driver, so relaying it is not
    # wanting it
    if policy.parts:
        wants[LAUNCH] = wants[LAUNCH] and any(_wants(part)[LAUNCH] for part in policy.parts)
    return wants
