"""Policies and workloads by name: the registries. Each is a decorator for classes of your own.

    from tidegate.plugins import eviction

    @eviction("newest")
    class Newest(EvictionPolicy): ...

Installed packages register by entry points of the groups ``tidegate.eviction`` and so on.
"""

from tidegate.policies.registries import eviction, placement, prefetch, tiering
from tidegate.workloads.program import workload

__all__ = ["eviction", "placement", "prefetch", "tiering", "workload"]
