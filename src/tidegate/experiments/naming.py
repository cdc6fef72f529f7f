"""Names of policies, for people and for the store."""

from __future__ import annotations

from typing import Any

from tidegate.policies.interface.policy import Policy


def policy_inputs(policy: Policy) -> list[Any]:
    """Return a policy's name and options; the store adds its code and its other attributes."""
    return [type(policy).__qualname__, policy.name, policy.settings()]
