"""A policy as a driver of today can have it: by the end of a list at which regions arrive."""

from __future__ import annotations

from tidegate.errors import PolicyError
from tidegate.options import Option
from tidegate.policies.interface.policy import EvictionPolicy, label
from tidegate.policies.interface.steering import End
from tidegate.policies.interface.visibility import Everything, Faults, Samples, TouchBits
from tidegate.policies.registries import eviction
from tidegate.policies.structures.order import Order

# what a policy decides by that a list's end does not tell
_LOST = {
    Faults: "the victims that it names",
    Samples: "the victims that it names and the uses that it observes",
    TouchBits: "the victims that it names and their touch bits",
    Everything: "the victims that it names and the touches that it sees",
}


@eviction("steered")
class Steered(EvictionPolicy):
    """Do what is left of a policy where nobody may name a victim: put each region that arrives at
    an end of one of the driver's two lists (``interface/steering.py``).

    The driver evicts the head of ``unused``, then the head of ``used``. Observation, later faults
    and changes of mind are lost. Policies that can be had so say how, by ``steering()``; others are
    refused.
    """

    bare = "policy"
    policy = Option("lrm", "the policy that is steered; yours is file.py:Class")

    def __init__(self, **options: object):
        super().__init__(**options)
        self._steered = eviction.make(self.policy)
        if type(self._steered).steering is EvictionPolicy.steering:
            raise PolicyError(
                f"policy '{label(self._steered)}' cannot be steered: it would lose "
                f"{_LOST[type(self._steered.sees)]}; a policy whose choices follow from the order "
                "of arrivals alone defines steering()"
            )

    def start(self) -> None:
        self._steered.attach(self.memory)
        self._steered.start()
        steering = self._steered.steering()
        assert steering is not None
        self._keep, self._then = steering.keep, int(steering.then)
        self._used, self._unused = Order(), Order()

    def on_fault(self, region: int) -> None:
        if region in self._used or region in self._unused:
            return
        if len(self._used) < self._keep or self._then == End.USED_TAIL:
            self._used.move_to_tail(region)
        elif self._then == End.USED_HEAD:
            self._used.move_to_head(region)
        elif self._then == End.UNUSED_HEAD:
            self._unused.move_to_head(region)
        else:
            self._unused.move_to_tail(region)

    def on_eviction(self, region: int) -> None:
        (self._used if region in self._used else self._unused).remove(region)

    def victim(self) -> int:
        return self._unused.head if self._unused else self._used.head

    def report(self) -> dict[str, object]:
        return {"kept": self._keep, "then": End(self._then).name}

    def finished(self) -> None:
        assert set(self._used) | set(self._unused) == self.resident
