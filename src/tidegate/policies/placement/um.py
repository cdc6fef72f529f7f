"""Unified memory as it comes."""

from __future__ import annotations

from tidegate.policies.interface.policy import PlacementPolicy
from tidegate.policies.registries import placement


@placement("um")
class UnifiedMemory(PlacementPolicy):
    """Give no advice: pages migrate when they fault (SC'19's UM)."""
