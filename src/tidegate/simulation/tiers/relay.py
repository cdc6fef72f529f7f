"""The relay: how the compiled walk calls policies.

Each is a C function ``int64 (block, event)``, as in simulation/gpu/relay.py: a compiled class, or
an adapter around the methods of a policy that runs in Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from operator import index
from typing import Any, NamedTuple

from tidegate.errors import PolicyError
from tidegate.policies.interface import events as near_events
from tidegate.policies.interface.header import OWN
from tidegate.policies.interface.policy import EvictionPolicy, Policy, label
from tidegate.policies.interface.tier_events import (
    EVENT_BITS,
    EVENT_NAMES,
    FAILED,
    KNOWN,
    PLACE,
    RETURN,
    SPILL,
    VICTIM,
)
from tidegate.policies.interface.tier_policy import STAY, TierPolicy
from tidegate.policy_compiler.compiled import Compiled, compile_policy
from tidegate.policy_compiler.source import CannotCompile
from tidegate.policy_compiler.tier_header import fill_header
from tidegate.registry import error_line
from tidegate.simulation.gpu.relay import WrongAnswer, is_shipped
from tidegate.simulation.tiers.state import Tiers

_C_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_NOTHING = FAILED - 1  # an answer that is no page and no tier
_WITHOUT_PAGE = ("victim", "spill", "observe", "on_samples")  # methods without a page
_LEFT = 1  # words of a block's rows that the tiers keep: the touch at which a page left


class CompiledCaller:
    """Calls a compiled tiering policy: nothing stands in between.

    What the tiers keep of a page lies beside what the policy keeps of it, in the rows of its block:
    a miss waits for memory once, not twice. ``tiers`` are the tiers with these rows.
    """

    def __init__(
        self, policy: TierPolicy, compiled: Compiled, tiers: Tiers, near: int, middle: int
    ):
        self._policy, self._compiled, self._pages = policy, compiled, len(tiers.where)
        self._block = compiled.make_block(policy, self._pages)
        rows = compiled.rows(self._block, self._pages)
        if tiers.counts["evictions"][0]:  # otherwise all is 0, and takes no memory yet
            rows[:, :_LEFT] = tiers.history[:, :_LEFT]
        self.tiers = tiers._replace(history=rows)
        fill_header(self._block, self.tiers, near, middle)
        self.own, self.address = self._block.ctypes.data, compiled.address

    def raise_failure(self) -> None:
        """Do nothing: what compiled code raised is not known."""

    def finish(self) -> None:
        """Give the policy its state back."""
        self._compiled.unpack(self._policy, self._block[OWN:], self._pages)


class Caller:
    """Calls a Python policy, keeps what it raises and returns FAILED to the walk."""

    def __init__(
        self, policy: Policy, names: dict[int, str], answered: dict[int, Callable[[Any], int]]
    ):
        self.own = 0
        self._policy, self._failure, self._where = policy, None, ""
        methods = {
            event: (name, getattr(policy, name))
            for event, name in names.items()
            if hasattr(policy, name)
        }

        def call(own: int, event: int) -> int:
            kind, page = event & ((1 << EVENT_BITS) - 1), event >> EVENT_BITS
            name, method = methods[kind]
            try:
                found = method() if name in _WITHOUT_PAGE else method(page)
                return answered[kind](found) if kind in answered else 0
            except BaseException as error:
                self._failure = error
                self._where = f"{name}()" if name in _WITHOUT_PAGE else f"{name}({page})"
                return FAILED

        self._c = _C_SIGNATURE(call)
        self.address = ctypes.cast(self._c, ctypes.c_void_p).value or 0

    def raise_failure(self) -> None:
        """Raise what the policy raised, if it did."""
        if isinstance(self._failure, KeyboardInterrupt):
            raise self._failure
        if self._failure is not None:
            if isinstance(self._failure, WrongAnswer):
                what = f"answered {self._where} with {self._failure}"
            else:
                what = f"raised in {self._where}: {error_line(self._failure, type(self._policy))}"
            raise PolicyError(f"policy '{label(self._policy)}' {what}") from self._failure

    def finish(self) -> None:
        """Do nothing: the policy holds its own results."""


class Choice(NamedTuple):
    """How a policy is called; ``later``: it may be compiled yet; ``reason``: why it cannot be."""

    caller: Caller | CompiledCaller
    later: bool = False
    reason: str = ""


def choose_caller(
    policy: TierPolicy, tiers: Tiers, near: int, middle: int, only_known: bool
) -> Choice:
    """Compile a tiering policy; with ``only_known``, only one that is shipped or in the cache."""
    only_known &= not is_shipped(policy)
    try:
        if policy.parts:
            raise CannotCompile("a tiering policy that is made of others cannot be compiled")
        compiled = compile_policy(policy, str(policy.sees), only_known, "tiers", _LEFT)
    except CannotCompile as why:
        return Choice(placement_caller(policy), reason=str(why))
    if compiled is None:
        return Choice(placement_caller(policy), later=True)
    assert isinstance(compiled, Compiled)
    return Choice(CompiledCaller(policy, compiled, tiers, near, middle))


def placement_caller(policy: TierPolicy) -> Caller:
    """Return a caller of a tiering policy that runs in Python."""
    tier = partial(_number, expected="STAY, MIDDLE or FAR")
    return Caller(
        policy, EVENT_NAMES, {PLACE: tier, VICTIM: _number, SPILL: _number, RETURN: _known}
    )


def eviction_caller(policy: EvictionPolicy) -> Caller:
    """Return a caller of an eviction policy, which runs in Python."""
    kinds = (
        near_events.VICTIM,
        near_events.FAULT,
        near_events.EVICTION,
        near_events.NOTIFICATION,
        near_events.OBSERVE,
    )
    names = {kind: near_events.EVENT_NAMES[kind] for kind in kinds}
    return Caller(policy, names, dict.fromkeys((near_events.VICTIM, near_events.OBSERVE), _number))


def _number(answer: Any, expected: str = "the number of a page") -> int:
    """Return a page or a tier; a negative number is as wrong as None, but does not mean FAILED."""
    if answer is None:
        return _NOTHING
    try:
        number = index(answer)
    except TypeError:
        raise WrongAnswer(f"{answer!r}, a {type(answer).__name__}; expected {expected}") from None
    return number if number >= 0 else _NOTHING


def _known(answer: Any) -> int:
    """Return KNOWN if the policy says on a page's return that it will STAY."""
    return KNOWN if answer == STAY and answer is not False else 0
