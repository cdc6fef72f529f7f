"""What the author of a policy needs.

from tidegate.policy import EvictionPolicy, Faults

class Newest(EvictionPolicy):
    sees = Faults()

    def on_fault(self, region):
        self.order.move_to_tail(region)

    def victim(self):
        return self.order.tail
"""

from tidegate.options import Option
from tidegate.policies.interface.memory_view import MemoryView
from tidegate.policies.interface.policy import (
    Decision,
    EvictionPolicy,
    PlacementPolicy,
    Policy,
    PrefetchPolicy,
)
from tidegate.policies.interface.steering import End, Steering
from tidegate.policies.interface.tier_policy import Spill, Tier, TierPolicy
from tidegate.policies.interface.visibility import Everything, Faults, Samples, Sees, TouchBits
from tidegate.policies.structures.column import Column, Marks
from tidegate.policies.structures.draws import Draws
from tidegate.policies.structures.heap import Heap
from tidegate.policies.structures.order import Order, Orders, first

__all__ = [
    "Column",
    "Decision",
    "Draws",
    "End",
    "Everything",
    "EvictionPolicy",
    "Faults",
    "Heap",
    "Marks",
    "MemoryView",
    "Option",
    "Order",
    "Orders",
    "PlacementPolicy",
    "Policy",
    "PrefetchPolicy",
    "Samples",
    "Sees",
    "Spill",
    "Steering",
    "Tier",
    "TierPolicy",
    "TouchBits",
    "first",
]
