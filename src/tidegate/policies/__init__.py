"""Policies: what leaves (eviction), what comes early (prefetch), where objects live (placement).

A policy sees only what it declares (``sees``) and acts only through the mechanism's verbs, so the
same object runs on the simulated GPU and on live memory. The registries (``tidegate.eviction`` and
so on) are in ``registries``: here those names are the folders.
"""

from tidegate.policies.interface.memory_view import MemoryView
from tidegate.policies.interface.policy import (
    Decision,
    EvictionPolicy,
    PlacementPolicy,
    Policy,
    PrefetchPolicy,
)
from tidegate.policies.interface.visibility import Everything, Faults, Samples, Sees, TouchBits
from tidegate.policies.structures.column import Column
from tidegate.policies.structures.draws import Draws
from tidegate.policies.structures.heap import Heap
from tidegate.policies.structures.marks import Marks
from tidegate.policies.structures.order import Order, first
from tidegate.policies.structures.orders import Orders

__all__ = [
    "Column",
    "Decision",
    "Draws",
    "Everything",
    "EvictionPolicy",
    "Faults",
    "Heap",
    "Marks",
    "MemoryView",
    "Order",
    "Orders",
    "PlacementPolicy",
    "Policy",
    "PrefetchPolicy",
    "Samples",
    "Sees",
    "TouchBits",
    "first",
]
