"""The relay: how the compiled mechanism calls a policy.

A policy is called through one C function, ``int64 (block, event)``. For a policy that runs in
Python that function is an adapter around the object's methods; for a compiled one it is its
compiled class, and ``block`` is the address of its state. The mechanism knows both by their
addresses (``intrinsics.call_at``), so one compiled engine serves them all.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from operator import index
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.policies.interface.events import (
    EVENT_BITS,
    EVENT_NAMES,
    EVICTION,
    FAILED,
    FREE,
    OBSERVE,
    VICTIM,
)
from tidegate.policies.interface.handled_events import handled_events
from tidegate.policies.interface.header import FAILURE, OWN, make_header
from tidegate.policies.interface.policy import Policy
from tidegate.policies.interface.visibility import TouchBits
from tidegate.policy_compiler.compiled import Compiled, Twin, compile_policy
from tidegate.policy_compiler.source import CannotCompile
from tidegate.simulation.gpu.future import Future
from tidegate.simulation.gpu.memory import Memory

_C_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_KINDS = 1 << EVENT_BITS
# calls of policies from which a class of a user's is compiled: as long as compiling would take
LONG_RUN = 500_000


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
        for leaving in {EVICTION, FREE} & handlers.keys():
            if isinstance(policy.sees, TouchBits):
                handlers[leaving] = _showing_touch_bits(policy, handlers[leaving])
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

    @property
    def row(self) -> tuple[int, int, int]:
        """How a compiled policy calls this one, which is a part of it: see header.py."""
        return self.address, self.own, _event_bits(self.wants)

    def failures(self) -> list[BaseException]:
        """Return what the policy raised."""
        return [self.failure] if self.failure else []

    def unpack(self) -> bool:
        """Return that the policy has its state: it is its own."""
        return True


class CompiledCaller:
    """Calls a compiled policy: nothing stands in between.

    Policies it is made of have callers of their own.
    """

    def __init__(self, policy: Policy, compiled: Compiled | Twin, parts: list[Any], world: World):
        self._policy, self._compiled, self._parts = policy, compiled, parts
        self._regions = len(world.memory.resident)
        self._table = np.array([part.row for part in parts], np.int64)
        words = compiled.pack(policy, self._regions)
        self._block = make_header(*world, self._table, words)
        self.wants = _wants(policy)
        self.own = self._block.ctypes.data
        self.address = compiled.address

    @property
    def row(self) -> tuple[int, int, int]:
        """How a compiled policy calls this one, which is a part of it: see header.py."""
        return self.address, self.own, _event_bits(self.wants)

    @property
    def failed(self) -> bool:
        """Whether the policy raised; it does if one of its parts did."""
        return bool(self._block[FAILURE])

    def failures(self) -> list[BaseException]:
        """Return what parts that run in Python raised; what compiled code raised is not known."""
        return [failure for part in self._parts for failure in part.failures()]

    def unpack(self) -> bool:
        """Give the policy its state back; return whether all of it is there."""
        parts = [part.unpack() for part in self._parts]
        self._compiled.unpack(self._policy, self._block[OWN:], self._regions)
        return all(parts) and isinstance(self._compiled, Compiled)


class World(NamedTuple):
    """What a block's header is made from."""

    memory: Memory
    frames: int
    observable: int
    future: Future | None


class Choice(NamedTuple):
    """How a policy is called; ``later``: it may be compiled yet; ``reason``: why it cannot be."""

    caller: Caller | CompiledCaller
    later: bool = False
    reason: str = ""


def choose_caller(policy: Policy, world: World, long: bool) -> Choice:
    """Compile a policy if it pays.

    What comes with Tidegate is compiled at once: it is compiled once and then cached. Other classes
    are compiled when a run turns out to be ``long``, or if they are in the cache.
    """
    try:
        made = _compiled_caller(policy, str(policy.sees), world, not (long or is_shipped(policy)))
    except CannotCompile as why:
        return Choice(Caller(policy, world.memory.books), reason=str(why))
    return Choice(made) if made else Choice(Caller(policy, world.memory.books), later=True)


def _compiled_caller(
    policy: Policy, sees: str, world: World, only_known: bool
) -> CompiledCaller | None:
    """Return a caller; None if a class would have to be compiled first. Parts may run in Python."""
    compiled = compile_policy(policy, sees, only_known)
    parts: list[Any] = []
    for part in policy.parts:
        try:
            parts.append(_compiled_caller(part, sees, world, only_known))
        except CannotCompile:
            parts.append(Caller(part, world.memory.books))
    if compiled is None or None in parts:
        return None
    return CompiledCaller(policy, compiled, parts, world)


def is_shipped(policy: Policy) -> bool:
    """Return whether a policy, and those it is made of, come with Tidegate."""
    own = type(policy).__module__.startswith("tidegate.")
    return own and all(is_shipped(part) for part in policy.parts)


def _showing_touch_bits(policy: Policy, handler: Callable[[int], None]) -> Callable[[int], None]:
    """The policy's on_eviction or on_free, with the leaving region's touch bits handed over for as
    long as it runs.
    """

    def handle(region: int) -> None:
        policy.memory.leaving = region
        handler(region)
        policy.memory.leaving = -1

    return handle


def _wants(policy: Policy) -> NDArray[np.uint8]:
    """Return a flag for each event, set for those that the policy handles."""
    wants = np.zeros(_KINDS, np.uint8)
    wants[handled_events(policy)] = 1
    return wants


def _event_bits(wants: NDArray[np.uint8]) -> int:
    return sum(1 << int(event) for event in np.flatnonzero(wants))
