"""Names of policies, for people and for the store."""

from __future__ import annotations

from typing import Any

from tidegate.policies.interface.policy import Policy


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


def policy_inputs(policy: Policy) -> list[Any]:
    """Return a policy's name and options; the store adds its code and its other attributes."""
    return [type(policy).__qualname__, policy.name, policy.settings()]
