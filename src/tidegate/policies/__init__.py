"""Decisions: what leaves (eviction), what comes early (prefetch), where things live (placement).

A policy sees only what it declares (``sees``) and acts only through the mechanism's verbs, so the
same object runs on the simulated GPU and on live memory. The registries (``tidegate.eviction`` and
so on) are in ``registries``: here those names are the folders.
"""

from tidegate.policies.interface.memory_view import MemoryView
from tidegate.policies.interface.policy import (
    EvictionPolicy,
    PlacementPolicy,
    Policy,
    PrefetchPolicy,
)
from tidegate.policies.interface.visibility import Everything, Faults, Samples, Sees, TouchBits
from tidegate.policies.structures.order import Order, first

__all__ = [
    "Everything",
    "EvictionPolicy",
    "Faults",
    "MemoryView",
    "Order",
    "PlacementPolicy",
    "Policy",
    "PrefetchPolicy",
    "Samples",
    "Sees",
    "TouchBits",
    "first",
]
