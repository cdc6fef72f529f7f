"""Policies by name. Decorators: ``@eviction("lru")``, ``@prefetch("tree")``, ``@placement("um")``."""

from __future__ import annotations

from tidegate.policies.policy import EvictionPolicy, PlacementPolicy, PrefetchPolicy
from tidegate.registry import Registry

eviction: Registry[EvictionPolicy] = Registry("eviction", lambda: EvictionPolicy, "tidegate.policies.eviction")
prefetch: Registry[PrefetchPolicy] = Registry("prefetch", lambda: PrefetchPolicy, "tidegate.policies.prefetch")
placement: Registry[PlacementPolicy] = Registry("placement", lambda: PlacementPolicy, "tidegate.policies.placement")
