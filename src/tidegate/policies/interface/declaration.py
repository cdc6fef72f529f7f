"""Declarations: which events a policy handles, and what its class must and must not say.

A method that is never called is a mistake that no run would show: a handler for an event that does
not exist, or one whose events the policy does not declare to see. Such classes are refused.
"""

from __future__ import annotations

import difflib
import inspect
from pathlib import Path
from typing import Any

from tidegate.errors import PolicyError
from tidegate.policies.interface.events import EVENT_NAMES, EVICTION, FAULT, FREE, LAUNCH, PREFETCH
from tidegate.policies.interface.policy import EvictionPolicy, Policy, label
from tidegate.policies.interface.tier_policy import EVENT_NAMES as TIER_EVENT_NAMES
from tidegate.policies.interface.tier_policy import TierPolicy
from tidegate.policies.interface.visibility import Samples, Sees

_OF_EVICTION = ("victim", "observe")
_OF_SAMPLES = ("observe", "on_notification")
WITHOUT_NUMBER = (*_OF_EVICTION, "spill", "on_samples")  # methods that take nothing but self
_BASES = (Policy, EvictionPolicy, TierPolicy)


def handled_events(policy: Policy) -> list[int]:
    """Return the events that must be relayed to a policy, or asked of it."""
    names = TIER_EVENT_NAMES if isinstance(policy, TierPolicy) else EVENT_NAMES
    events = {event for event, name in names.items() if _handles(type(policy), name)}
    # its on_prefetch is its on_fault, unless it says otherwise
    if isinstance(policy, EvictionPolicy) and FAULT in events:
        events.add(PREFETCH)
    # a region that dies leaves as if evicted, unless the policy says otherwise
    if EVICTION in events and not isinstance(policy, TierPolicy):
        events.add(FREE)
    # a launch that is not handled does not wait for the driver, so relaying alone is not handling
    if policy.parts and not any(LAUNCH in handled_events(part) for part in policy.parts):
        events.discard(LAUNCH)
    return sorted(events)


def _handles(cls: type[Policy], name: str) -> bool:
    """Return whether a class defines a method itself, or inherits it from no base."""
    return getattr(cls, name, None) not in [getattr(base, name, None) for base in _BASES]


def check_declared(policy: Policy) -> None:
    """Raise PolicyError if a policy's class does not say what it sees, cannot decide, or has a
    method that would never be called. Policies that it is made of are checked, too.
    """
    for part in policy.parts:
        check_declared(part)
    _check_sees(policy)
    if isinstance(policy, EvictionPolicy) and getattr(policy.victim, "__isabstractmethod__", False):
        raise PolicyError(
            f"policy '{label(policy)}' has no method victim(); it must answer a resident region"
        )
    events = _events_of(policy)
    for name in _methods(type(policy)):
        if name not in events:
            raise PolicyError(
                f"policy '{label(policy)}' defines {name}(){_place(policy, name)}, which is never "
                f"called; its methods are {', '.join(events)}{_hint(name, events)}"
            )
        _check_arguments(policy, name)
        # a policy made of others relays what these see
        if name in _OF_SAMPLES and not policy.parts and not isinstance(policy.sees, Samples):
            raise PolicyError(
                f"policy '{label(policy)}' must declare sees = Samples() to have {name}() called"
                f"{_place(policy, name)}, got sees = {policy.sees}"
            )


def _check_sees(policy: Policy) -> None:
    if not isinstance(policy.sees, Sees):
        raise PolicyError(
            f"policy '{label(policy)}' has sees = {policy.sees!r}; "
            "expected a level such as Faults()"
        )
    for cls in type(policy).__mro__:
        for name, value in vars(cls).items():
            if isinstance(value, Sees) and name != "sees":
                raise PolicyError(
                    f"policy '{label(policy)}' has {name} = {value}, which nothing reads; "
                    f"write sees = {value}"
                )


def _events_of(policy: Policy) -> list[str]:
    """Return the methods that a mechanism calls with events of a policy of this kind."""
    if isinstance(policy, TierPolicy):
        return list(TIER_EVENT_NAMES.values())
    asked = _OF_EVICTION if isinstance(policy, EvictionPolicy) else ()
    return [*asked, *(name for name in EVENT_NAMES.values() if name.startswith("on_"))]


def _methods(cls: type[Policy]) -> list[str]:
    """Return the methods that look like handlers and that the class really defines."""
    asked = {*_OF_EVICTION, *TIER_EVENT_NAMES.values()}
    names = sorted(name for name in dir(cls) if name.startswith("on_") or name in asked)
    return [name for name in names if callable(getattr(cls, name)) and _handles(cls, name)]


def _check_arguments(policy: Policy, name: str) -> None:
    """Refuse a handler that cannot be called as mechanisms call it."""
    given = () if name in WITHOUT_NUMBER else (0,)
    try:
        signature = inspect.signature(getattr(policy, name))
    except (TypeError, ValueError):
        return  # a function of C, perhaps, which has none
    try:
        signature.bind(*given)
    except TypeError:
        expected = "nothing but self" if not given else "self and one number"
        raise PolicyError(
            f"policy '{label(policy)}': {name}() must take {expected}, "
            f"got {name}{signature}{_place(policy, name)}"
        ) from None


def _hint(name: str, events: list[str]) -> str:
    near = difflib.get_close_matches(name, events, n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


def _place(policy: Policy, name: str) -> str:
    """Return where a method is written, in brackets."""
    code: Any = getattr(inspect.unwrap(getattr(type(policy), name)), "__code__", None)
    return f" ({Path(code.co_filename).name}, line {code.co_firstlineno})" if code else ""
