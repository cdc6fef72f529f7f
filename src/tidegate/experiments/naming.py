"""Names of policies, for people and for the store."""

from __future__ import annotations

from typing import Any

from tidegate.options import Configurable
from tidegate.policies.interface.policy import Policy
from tidegate.registry import source_digest


def policy_inputs(policy: Policy, given: Any) -> list[Any]:
    """Return what identifies a policy in the store; ``given`` is what the specification holds.

    A policy that was given as an object may be more than its class and its options.
    """
    named = given is None or isinstance(given, str) or _is_plain(policy)
    return [
        type(policy).__qualname__,
        policy.name,
        policy.settings(),
        source_digest(type(policy)) if named else "unrepeatable",
    ]


def _is_plain(thing: Configurable) -> bool:
    """Return whether this object is just its class and its options."""
    try:
        made = type(thing)(**thing.settings())
    except Exception:
        return False
    own = {
        k: v
        for k, v in vars(thing).items()
        if k not in ("memory", "order") and k not in thing.options()
    }
    fresh = {k: v for k, v in vars(made).items() if k != "order" and k not in thing.options()}
    try:
        return bool(own == fresh)
    except ValueError:  # a comparison of arrays has no single truth value
        return False
