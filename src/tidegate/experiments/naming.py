"""Names of policies, for people and for the store."""

from __future__ import annotations

from typing import Any

from tidegate.options import Configurable
from tidegate.policies.interface.policy import Policy
from tidegate.registry import source_digest


def spell(policy: Policy) -> str:
    """Return a policy as people write it, with the options that differ from their defaults.

    >>> from tidegate import prefetch
    >>> spell(prefetch.make("tree(threshold=75)"))
    'tree(threshold=75)'
    """
    declared = type(policy).options()
    changed = [
        f"{k}={v}"
        for k, v in policy.settings().items()
        if k in declared and v != declared[k].default
    ]
    name = policy.name or type(policy).__name__
    return f"{name}({', '.join(changed)})" if changed else name


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
