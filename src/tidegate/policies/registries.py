"""Policies by name.

Decorators: ``@eviction("lru")``, ``@prefetch("tree")``, ``@placement("um")``, ``@tiering("bam")``.
"""

from __future__ import annotations

from typing import TypeAlias

from tidegate.policies.interface.policy import EvictionPolicy, PlacementPolicy, PrefetchPolicy
from tidegate.policies.interface.tier_policy import TierPolicy
from tidegate.registry import Registry

eviction: Registry[EvictionPolicy] = Registry(
    "eviction", lambda: EvictionPolicy, "tidegate.policies.eviction"
)
prefetch: Registry[PrefetchPolicy] = Registry(
    "prefetch", lambda: PrefetchPolicy, "tidegate.policies.prefetch"
)
placement: Registry[PlacementPolicy] = Registry(
    "placement", lambda: PlacementPolicy, "tidegate.policies.placement"
)
tiering: Registry[TierPolicy] = Registry("tiering", lambda: TierPolicy, "tidegate.policies.tiering")

# what names a policy: its name with options, a class, or an object
EvictionLike: TypeAlias = str | type[EvictionPolicy] | EvictionPolicy
PrefetchLike: TypeAlias = str | type[PrefetchPolicy] | PrefetchPolicy
PlacementLike: TypeAlias = str | type[PlacementPolicy] | PlacementPolicy
TieringLike: TypeAlias = str | type[TierPolicy] | TierPolicy
