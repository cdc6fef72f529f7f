"""The policies of an arena: made from their names, checked, and called.

Live memory shows faults, samples and touch bits, so policies that need more are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tidegate.errors import TidegateError
from tidegate.live.arena.setup import ArenaSetup
from tidegate.live.pager.calls import Call, PolicyCalls, PolicyFailure
from tidegate.policies.interface.declaration import check_declared
from tidegate.policies.interface.policy import (
    EvictionPolicy,
    PlacementPolicy,
    Policy,
    PrefetchPolicy,
    label,
)
from tidegate.policies.interface.tier_policy import TierPolicy
from tidegate.policies.interface.visibility import Everything, TouchBits
from tidegate.policies.prefetch.together import make_prefetch
from tidegate.policies.registries import eviction, placement, tiering
from tidegate.registry import error_line


def make_policies(
    setup: ArenaSetup, calls: PolicyCalls | None = None
) -> tuple[EvictionPolicy, PrefetchPolicy, PlacementPolicy]:
    """Make the policies by their names; in a pager ``calls`` notes which is made."""
    noted = calls or PolicyCalls()
    with noted.of("eviction", "__init__"):
        first = eviction.make(setup.eviction)
    with noted.of("prefetch", "__init__"):
        second = make_prefetch(setup.prefetch)
    with noted.of("placement", "__init__"):
        return first, second, placement.make(setup.placement)


def make_tiering(setup: ArenaSetup) -> TierPolicy:
    """Make the tiering policy by its name; refuse one that live memory cannot serve."""
    policy: TierPolicy = tiering.make(setup.tiering)
    if isinstance(policy.sees, Everything) and policy.sees.future:
        raise TidegateError(
            f"policy '{policy.name}' sees the future, which no live memory can show; "
            "take tier-order or tier-reuse"
        )
    if policy.inclusive or policy.read_ahead_pages > 1:
        raise TidegateError(
            f"policy '{policy.name}' keeps copies of near pages and reads ahead, as the kernel's "
            "page cache does; on live memory take hmm(cached=exclusive, ahead=1) or tier-order"
        )
    if hasattr(policy, "victim"):
        raise TidegateError(
            f"policy '{policy.name}' chooses victims itself; on live memory the eviction policy "
            "does; take tier-order"
        )
    return policy


def check_policies(policies: Iterable[Policy]) -> None:
    """Refuse policies that need more than faults, samples and touch bits."""
    for policy in policies:
        check_declared(policy)
        if isinstance(policy.sees, Everything):
            raise TidegateError(
                f"policy '{label(policy)}' sees every touch, which no live memory can show; "
                "take one that sees faults, samples or touch bits, such as lru"
            )
        if isinstance(policy, PlacementPolicy) and policy.needs_plan:
            raise TidegateError(
                f"policy '{label(policy)}' must know what each launch uses before it begins, "
                "which live memory cannot tell; take um or host"
            )


def handler(policy: Policy, event: str) -> Callable[[int], Any] | None:
    """Return the policy's method for an event, if it defines one.

    Touch bits can be read while the region leaves only.
    """
    defined = (event, "on_eviction") if event == "on_free" else (event,)
    if all(getattr(type(policy), name, None) is getattr(Policy, name, None) for name in defined):
        return None
    method: Callable[[int], Any] = getattr(policy, event)
    if event not in ("on_eviction", "on_free") or not isinstance(policy.sees, TouchBits):
        return method

    def with_touch_bits(region: int) -> None:
        policy.memory.leaving = region
        method(region)
        policy.memory.leaving = -1

    return with_touch_bits


def blame(policy: Policy | TierPolicy, call: Call, error: BaseException) -> PolicyFailure:
    """Return the error of a call, which names the policy and the call."""
    name = policy.name if isinstance(policy, TierPolicy) else label(policy)
    said = error_line(error, type(policy))
    return PolicyFailure(call.kind, f"policy '{name}' raised in {call}: {said}")
