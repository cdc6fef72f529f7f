"""Which events a policy handles: those whose methods its class really defines."""

from __future__ import annotations

from tidegate.policies.interface import tier_events
from tidegate.policies.interface.events import EVENT_NAMES, EVICTION, FAULT, FREE, LAUNCH, PREFETCH
from tidegate.policies.interface.policy import EvictionPolicy, Policy
from tidegate.policies.interface.tier_policy import TierPolicy


def handled_events(policy: Policy) -> list[int]:
    """Return the events that must be relayed to a policy, or asked of it."""
    names = tier_events.EVENT_NAMES if isinstance(policy, TierPolicy) else EVENT_NAMES
    events = {event for event, name in names.items() if _defines(type(policy), name)}
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


def _defines(cls: type[Policy], name: str) -> bool:
    inherited = [getattr(base, name, None) for base in (Policy, EvictionPolicy, TierPolicy)]
    return getattr(cls, name, None) not in inherited
