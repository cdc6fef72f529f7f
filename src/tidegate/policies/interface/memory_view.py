"""The memory view: what a mechanism shows a policy, and the verbs it accepts."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, Protocol

from numpy.typing import NDArray

from tidegate.trace.geometry import Geometry
from tidegate.trace.plan import Plan
from tidegate.trace.trace import Object


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
    def is_served(self, region: int) -> bool:
        """Was this region served in the driver's current turn?

        A served victim ends the turn early.
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
