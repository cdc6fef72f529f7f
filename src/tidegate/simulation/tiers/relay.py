"""How the compiled walk calls policies: through C functions ``int64 (own, event)``, as in
simulation/gpu/relay.py.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import PolicyError
from tidegate.policies.interface import events as near_events
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
from tidegate.policies.interface.tier_header import NOW, OWN, PAIR_COUNT, USES
from tidegate.policies.interface.tier_policy import STAY, TierPolicy
from tidegate.registry import error_line
from tidegate.simulation.gpu.relay import WrongAnswer
from tidegate.simulation.tiers.state import Tiers

_C_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_NOTHING = FAILED - 1  # an answer that is no page and no tier
_WITHOUT_PAGE = ("victim", "spill", "observe", "on_samples")  # methods without a page


class Twin:
    """Calls a placement's compiled twin directly."""

    def __init__(self, policy: TierPolicy, tiers: Tiers, near: int, middle: int):
        assert policy.compiled is not None
        self._policy, self._twin = policy, policy.compiled
        words = self._twin.words(policy, len(tiers.where), near, middle)
        self._data = _make_header(tiers, near, middle, words)
        self.own = self._data.ctypes.data
        self.address = self._twin.function.address

    def raise_failure(self) -> None:
        """Do nothing: a twin does not fail."""

    def finish(self) -> None:
        self._twin.results(self._policy, self._data[OWN:])


def _make_header(tiers: Tiers, near: int, middle: int, own: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the header, followed by the policy's own words."""
    header: NDArray[np.int64] = np.zeros(OWN, np.int64)
    header[:3] = len(tiers.where), near, middle
    arrays = (
        tiers.counts["touches"],
        tiers.counts["middle_used"],
        tiers.history,
        tiers.pairs,
        tiers.sampling["filled"],
    )
    header[NOW : PAIR_COUNT + 1] = [_address(array) for array in arrays]
    header[USES] = _address(tiers.uses)
    return np.concatenate([header, own])


def _address(array: Any) -> int:
    return int(array.ctypes.data) if array.size else 0


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


def placement_caller(policy: TierPolicy) -> Caller:
    tier = partial(_number, expected="STAY, MIDDLE or FAR")
    return Caller(
        policy, EVENT_NAMES, {PLACE: tier, VICTIM: _number, SPILL: _number, RETURN: _known}
    )


def eviction_caller(policy: EvictionPolicy) -> Caller:
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


def defines(policy: Policy, event: int) -> bool:
    """Return whether this placement's class defines a method for the event."""
    name = EVENT_NAMES[event]
    return getattr(type(policy), name, None) is not getattr(TierPolicy, name, None)
