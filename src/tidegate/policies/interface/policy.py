"""The policy API: what is relayed to a policy, what it is asked, and what it can ask for.

    relayed   on_fault · on_prefetch · on_eviction · on_notification · on_launch     define those you need
    asked     victim · observe (eviction policies)
    verbs     self.memory.prefetch / evict / advise / set_prefetch_threshold / observe_prefetched / count_remote

A method that a class does not define costs nothing: the mechanism never makes the call.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Container, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from numpy.typing import NDArray

from tidegate.errors import PolicyError
from tidegate.options import Configurable
from tidegate.policies.interface.visibility import Faults, Sees
from tidegate.policies.structures.order import Order
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Object

if TYPE_CHECKING:
    from tidegate.trace.plan import Plan


class MemoryView(Protocol):
    """What a mechanism, simulated or live, shows a policy, and the verbs it obeys."""

    geometry: Geometry
    objects: tuple[Object, ...]
    frames: int  # capacity in regions
    regions: int  # regions there are in all
    observable: int  # regions that may be observed at a time
    launch: str  # the name of the launch that is running, or about to
    shared: dict[str, Any]  # what policies of one run tell one another; see patterns.py

    @property
    def plan(self) -> Plan | None:
        """What each launch uses, by a compiler or a profile (compiler/plan/make.py); None: nobody
        knows what will be launched.
        """

    @property
    def resident(self) -> set[int]:
        """Regions that hold a frame."""

    @property
    def observed(self) -> Container[int]:
        """Regions with a sampled page out, whoever asked for it."""

    def is_resident(self, region: int) -> bool: ...
    def is_pinned(self, region: int) -> bool:
        """Was this region served in the driver's current turn?

        A pinned victim ends the turn early.
        """

    def faulted(self, region: int) -> NDArray[Any]:
        """Pages (numbers within the region) that faulted in the current turn; during on_fault."""

    def near(self, region: int) -> NDArray[Any]:
        """Which pages of the region are near, as booleans."""

    def prefetched(self, region: int) -> NDArray[Any]:
        """Which pages of the region are about to come although they did not fault; during
        on_prefetch.
        """

    def touched(self, region: int) -> NDArray[Any]:
        """Which pages of the region were touched since they came near.

        TouchBits: during on_eviction only.
        """

    @property
    def now(self) -> int:
        """Touches so far. Everything."""

    def last_touch(self, region: int) -> int:
        """The number of the region's latest touch, -1 if there was none. Everything."""

    def page_touches(self, region: int) -> NDArray[Any]:
        """The number of the latest touch of each of the region's pages, -1 where there was none.

        Everything.
        """

    def last_reference(self, page: int) -> int:
        """The reference that touched this page last, -1 if there was none. Everything."""

    def last_toucher(self, region: int) -> int:
        """The reference that made the region's latest touch, -1 if there was none. Everything."""

    def touch_count(self, region: int) -> int:
        """How often the region was touched so far. Everything."""

    def next_touch(self, region: int) -> int:
        """When the region is touched next, in touches from the start; very large if never.

        Everything(future).
        """

    def prefetch(self, first_page: int, pages: int = 1) -> None:
        """Bring these pages near; those already near are left alone."""

    def evict(self, region: int) -> None:
        """Send this region far without waiting for pressure."""

    def advise(self, first_page: int, pages: int, prefer: str | None) -> None:
        """Where these pages should live: "far" maps them remotely, so that they never fault; None
        takes it back.
        """

    def observe_prefetched(self, region: int) -> None:
        """Leave one page of this region, of those about to be prefetched, far, so that its use is
        noticed. Samples.
        """

    def count_remote(self, accesses: int) -> None:
        """Notify when a region had so many remote accesses, as far as there are counters; 0 stops
        it. Samples.
        """

    def set_prefetch_threshold(self, percent: int) -> None:
        """Tree prefetch takes subtrees more than this occupied; 101 switches it off."""


class Policy(Configurable):
    """Base of all policies."""

    sees: Sees = Faults()
    # False: it runs in user space, and each decision costs the machine's ``decision`` time
    in_driver: bool = True
    parts: Sequence[Policy] = ()  # the policies it is made of, if it asks or tells others
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

    def on_notification(self, region: int) -> None:
        """An observed page of this region was used."""

    def on_launch(self, launch: int) -> None:
        """Launch number ``launch`` (from 0) is about to begin."""

    def finished(self) -> None:
        """Called after each run: assert what must hold."""

    def report(self) -> dict[str, Any]:
        """What should be known of this policy after a run, as plain data; it goes into the run's
        facts.
        """
        return {}


class EvictionPolicy(Policy):
    """Decides which region leaves. ``self.order`` is there for its use."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.order = Order()

    def attach(self, memory: MemoryView) -> None:
        super().attach(memory)
        self.order = Order()

    @abstractmethod
    def victim(self) -> int:
        """The resident region that is to leave now."""

    def on_prefetch(self, region: int) -> None:
        """A region brought in by a prefetch arrives like one that faulted."""
        self.on_fault(region)

    def observe(self) -> int | None:
        """The resident region whose next use is to be noticed, or None.

        Asked after faults and notifications.
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
    """Decides where data live, usually once per launch, through ``self.memory.advise``,
    ``prefetch`` and ``evict``.
    """

    needs_plan: ClassVar[bool] = False  # must ``memory.plan`` say what each launch will use?
    # False: the program copies between memories of its own, past the driver's page tables
    managed: ClassVar[bool] = True


def label(policy: Policy) -> str:
    """What a policy is called in messages."""
    return policy.name or type(policy).__name__


def check_declared(policy: Policy) -> None:
    """Every mechanism's first question: does the class say what it sees, and can it decide?"""
    if not isinstance(policy.sees, Sees):
        raise PolicyError(
            f"policy '{label(policy)}' has sees = {policy.sees!r}; expected a level such as Faults()"
        )
    if isinstance(policy, EvictionPolicy) and getattr(policy.victim, "__isabstractmethod__", False):
        raise PolicyError(
            f"policy '{label(policy)}' has no method victim(); it must answer a resident region"
        )
