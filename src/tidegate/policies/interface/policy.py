"""The policy API: what is relayed to a policy, what it is asked, and what it can ask for.

    relayed   on_fault · on_prefetch · on_eviction · on_free · on_notification · on_launch, if there
    asked     victim · observe (eviction policies)
    verbs     self.memory.prefetch / evict / discard / advise / set_prefetch_threshold / …

A method that a class does not define costs nothing: the mechanism never makes the call.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Container, Sequence
from typing import Any, ClassVar, NamedTuple

from tidegate.options import Configurable
from tidegate.policies.interface.memory_view import MemoryView
from tidegate.policies.interface.steering import Steering
from tidegate.policies.interface.visibility import Faults, Sees
from tidegate.policies.structures.order import Order


class Decision(NamedTuple):
    """What a policy decided in a run, and after how much of what it had seen."""

    what: str  # "retired lru"
    after: str  # "212 evictions"


class Policy(Configurable):
    """Base of all policies."""

    sees: Sees = Faults()
    # False: it runs in user space, and each decision costs the machine's ``decision`` time
    in_driver: bool = True
    # most rounds of a loop in one call, as a driver limits them; 0: no limit (bounded.py)
    most_rounds: int = 0
    parts: Sequence[Policy] = ()  # the policies it is made of, if it relays to others
    memory: MemoryView

    def attach(self, memory: MemoryView) -> None:
        """Called by the mechanism before each run."""
        self.memory = memory

    def start(self) -> None:
        """Called once, when ``self.memory`` is there and before anything is touched."""

    def on_fault(self, region: int) -> None:
        """Pages of this region faulted; the region has a frame and they are about to migrate."""

    def on_prefetch(self, region: int) -> None:
        """Pages of this region are about to migrate although they did not fault."""

    def on_eviction(self, region: int) -> None:
        """This region is about to leave."""

    def on_free(self, region: int) -> None:
        """All data of this region died; it leaves, and nothing is written back.

        Treat it like an eviction.
        """
        self.on_eviction(region)

    def on_notification(self, region: int) -> None:
        """An observed page of this region was used."""

    def on_launch(self, launch: int) -> None:
        """Launch number ``launch`` (from 0) is about to begin."""

    def finished(self) -> None:
        """Called after each run: assert what must hold."""

    def report(self) -> dict[str, Any]:
        """Return plain data about this policy after a run; it goes into the run's facts."""
        return {}

    def decisions(self) -> list[Decision]:
        """Return what this policy decided in the run, for people; in order."""
        return []

    def scale_counts(self, factor: float) -> None:
        super().scale_counts(factor)
        for part in self.parts:
            part.scale_counts(factor)


class EvictionPolicy(Policy):
    """Decides which region leaves. ``self.order`` is an order for its use."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.order = Order()

    def attach(self, memory: MemoryView) -> None:
        super().attach(memory)
        self.order = Order()

    @abstractmethod
    def victim(self) -> int:
        """Return the resident region that leaves now."""

    def on_prefetch(self, region: int) -> None:
        """Treat a region that is prefetched like one that faulted."""
        self.on_fault(region)

    def observe(self) -> int | None:
        """Return the resident region whose next use is to be noticed, or None.

        Called after faults and notifications.
        """
        return None

    def steering(self) -> Steering | None:
        """Return where arriving regions go in a driver that lets a policy say no more; None if
        that says nothing of this policy. Called after ``start``.
        """
        return None

    @property
    def resident(self) -> Collection[int]:
        """The regions that hold a frame now."""
        return self.memory.resident

    @property
    def observed(self) -> Container[int]:
        """The regions that are observed now."""
        return self.memory.observed


class PrefetchPolicy(Policy):
    """Decides what comes near before it is touched, through ``self.memory.prefetch`` or the tree's
    threshold.
    """


class PlacementPolicy(Policy):
    """Decides where objects live, usually once per launch, through ``self.memory.advise``,
    ``prefetch`` and ``evict``.
    """

    needs_plan: ClassVar[bool] = False  # whether ``memory.plan`` must give what each launch uses
    # False: the program copies between memories of its own, past the driver's page tables
    managed: bool = True
    copies_results: bool = False  # whether the program copies what it wrote out at its end


def label(policy: Policy) -> str:
    """Return how messages call a policy."""
    return policy.name or type(policy).__name__
