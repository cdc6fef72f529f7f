"""The memory view: what a mechanism shows one policy, and the verbs it accepts from it.

    policy ── looks ──▶ MemoryView ── as declared in ``sees`` ──▶ look-ups of the mechanism
           ── verbs ──▶            ── within ranges          ──▶ requests, executed after the call

Permissions and ranges are checked here, for simulated and live memory alike. A mechanism supplies
look-ups: simulation/gpu/view.py, simulation/tiers/view.py and live/pager/view.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container
from functools import partial
from operator import index
from typing import Any

from numpy.typing import NDArray

from tidegate.errors import PolicyError
from tidegate.policies.interface.costs import Costs
from tidegate.policies.interface.events import (
    ADVICE,
    ASK_ADVISE,
    ASK_COUNT,
    ASK_DISCARD,
    ASK_EVICT,
    ASK_EVICT_ASYNC,
    ASK_OBSERVE,
    ASK_PREFETCH,
    ASK_PREFETCH_ASYNC,
    ASK_THRESHOLD,
    MOST_ACCESSES,
    NO_TREE,
)
from tidegate.policies.interface.forecast import Forecast
from tidegate.policies.interface.visibility import Everything, Samples, Sees
from tidegate.trace.geometry import Geometry
from tidegate.trace.plan import Plan
from tidegate.trace.trace import Object

# What a policy must declare to call these methods. All others are open to every policy.
_RESTRICTED = {
    "Samples()": ("observe_prefetched", "count_remote"),
    "TouchBits()": ("touched",),
    "Everything()": ("last_touch", "page_touches", "last_reference", "last_toucher", "touch_count"),
    "Everything(future=True)": ("next_touch",),
}


class MemoryView(ABC):
    """What one policy sees of memory, and the verbs it has.

    ``declared`` is the policy's ``sees``; ``shown`` replaces it where a mechanism shows more.
    """

    observed: Container[int]  # regions with a sampled page, at the request of any policy

    def __init__(
        self,
        name: str,
        declared: Sees,
        geometry: Geometry,
        frames: int,
        observable: int,
        shared: dict[str, Any],
        shown: Sees | None = None,
    ):
        self.geometry = geometry
        self.frames = frames  # capacity in regions
        self.observable = observable  # regions that may be observed at a time
        self.shared = shared  # data that policies of one run exchange; see structures/patterns.py
        self.launch = ""  # name of the launch that is running or about to begin
        self.place = ""  # its place in the program, by which plans refer to it
        self.leaving = -1  # the region whose on_eviction is running
        self._name, self._declared, shown = name, declared, shown or declared
        self._sees_touches = isinstance(shown, Everything)
        self._sees_samples = isinstance(shown, (Samples, Everything))
        open_levels = _open_levels(shown)
        for level, methods in _RESTRICTED.items():
            if level not in open_levels:  # checked once, not in each call
                for method in methods:
                    setattr(self, method, partial(self._refuse, method, level))

    # For every policy

    @property
    @abstractmethod
    def objects(self) -> tuple[Object, ...]:
        """Allocations, by address."""

    @property
    @abstractmethod
    def regions(self) -> int:
        """Number of regions in all."""

    @property
    @abstractmethod
    def plan(self) -> Plan | None:
        """What each launch uses, by a compiler or a profile; None if launches are not known."""

    @property
    def forecast(self) -> Forecast:
        """What each launch uses, piece by piece. Refused where launches are not known."""
        raise PolicyError(f"{self._name} needs a program whose launches are known in advance")

    @property
    def costs(self) -> Costs | None:
        """What moving and using data takes here; None if the mechanism does not know."""
        return None

    @property
    @abstractmethod
    def resident(self) -> set[int]:
        """Regions that hold a frame."""

    @abstractmethod
    def is_resident(self, region: int) -> bool:
        """Return whether the region holds a frame."""

    @abstractmethod
    def is_served(self, region: int) -> bool:
        """Return whether the region was served in the driver's current turn.

        A victim that was served ends the turn early.
        """

    @abstractmethod
    def faulted(self, region: int) -> NDArray[Any]:
        """Return pages (numbers within the region) that faulted in this turn; during on_fault."""

    @abstractmethod
    def near(self, region: int) -> NDArray[Any]:
        """Return which pages of the region are near, as booleans."""

    @abstractmethod
    def prefetched(self, region: int) -> NDArray[Any]:
        """Return which pages of the region will migrate without a fault; during on_prefetch."""

    # Samples

    @property
    def accesses(self) -> int:
        """Accesses over the link that a counter had seen when its notification was served.

        During on_notification of a placement policy.
        """
        if not self._sees_samples:
            self._refuse("accesses", "Samples()")
        return self._accesses()

    # TouchBits

    def touched(self, region: int) -> NDArray[Any]:
        """Return which pages of the region were touched since they came near.

        With TouchBits only during on_eviction of that region.
        """
        if region != self.leaving and not self._sees_touches:
            raise PolicyError(
                f"{self._name} must read the touch bits of region {region} "
                f"in on_eviction({region}), not earlier"
            )
        return self._touched(region)

    # Everything. A mechanism that does not record touches accepts no policy that sees everything.

    @property
    def now(self) -> int:
        """Touches so far."""
        if not self._sees_touches:
            self._refuse("now", "Everything()")
        return self._now()

    def last_touch(self, region: int) -> int:
        """Return the number of the region's latest touch, -1 if there was none."""
        raise NotImplementedError

    def page_touches(self, region: int) -> NDArray[Any]:
        """Return the number of each page's latest touch, -1 where there was none."""
        raise NotImplementedError

    def last_reference(self, page: int) -> int:
        """Return the access site that touched this page last, -1 if there was none."""
        raise NotImplementedError

    def last_toucher(self, region: int) -> int:
        """Return the access site that made the region's latest touch, -1 if there was none."""
        raise NotImplementedError

    def touch_count(self, region: int) -> int:
        """Return how often the region was touched so far."""
        raise NotImplementedError

    def next_touch(self, region: int) -> int:
        """Return when the region is touched next, in touches from the start; very large if never.

        Everything(future=True).
        """
        raise NotImplementedError

    # The verbs

    def prefetch(self, first_page: int, pages: int = 1) -> None:
        """Bring these pages near, but for those that are near already."""
        first, count = self._check_pages("prefetch", first_page, pages)
        self._request(ASK_PREFETCH, first, count)

    def evict(self, region: int) -> None:
        """Send this region far before its frame is needed."""
        self._request(ASK_EVICT, self._check_resident("evict", region))

    def prefetch_async(self, first_page: int, pages: int = 1) -> None:
        """Bring these pages near by the inward copy stream, beside the kernels.

        A touch of a page on its way waits for it and does not fault.
        """
        self._request(ASK_PREFETCH_ASYNC, *self._check_pages("prefetch_async", first_page, pages))

    def evict_async(self, region: int) -> None:
        """Send this region far by the outward copy stream; its frame is free when the copy ends.

        A fault or prefetch of the region before the copy begins cancels it.
        """
        self._request(ASK_EVICT_ASYNC, self._check_resident("evict_async", region))

    def discard(self, region: int) -> None:
        """Drop this region, whose data are dead: nothing is written back, its pages are unwritten.

        Policies get ``on_free``.
        """
        self._request(ASK_DISCARD, self._check_resident("discard", region))

    def advise(self, first_page: int, pages: int, prefer: str | None) -> None:
        """Set where these pages live: "far" maps them remotely, so that they never fault.

        None takes it back. "read-mostly": far memory keeps a copy of near pages, so that clean ones
        are dropped, not written back; "read-write" takes it back.
        """
        if prefer not in ADVICE:
            raise PolicyError(
                f"{self._name} must advise 'far', None, 'read-mostly' or 'read-write', "
                f"got {prefer!r}"
            )
        first, count = self._check_pages("advise", first_page, pages)
        self._request(ASK_ADVISE, first, count, ADVICE[prefer])

    def observe_prefetched(self, region: int) -> None:
        """Leave one page of this region far, of those about to be prefetched, to notice its use.

        Samples.
        """
        region = self._whole("observe_prefetched", region=region)
        if not 0 <= region < self.regions:
            raise PolicyError(
                f"{self._name} must observe a region within 0 to {self.regions - 1}, got {region}"
            )
        self._request(ASK_OBSERVE, region)

    def count_remote(self, accesses: int, pages: int = 0) -> None:
        """Notify when a region had so many remote accesses, while counters last; 0 stops it.

        With ``pages`` a counter counts for a *granule* of so many pages, and on_notification gets
        the granule's number instead of a region's. Samples.
        """
        accesses = self._whole("count_remote", accesses=accesses)
        if not 0 <= accesses <= MOST_ACCESSES:
            raise PolicyError(
                f"{self._name} must count remote accesses from 0 to {MOST_ACCESSES}, got {accesses}"
            )
        pages, most = self._whole("count_remote", pages=pages), self._most_pages()
        if not 0 <= pages <= most:
            raise PolicyError(
                f"{self._name} must count by granules of 0 to {most} pages, got {pages}"
            )
        self._request(ASK_COUNT, accesses, pages)

    def set_prefetch_threshold(self, percent: int) -> None:
        """Let tree prefetch take subtrees more than this occupied; 101 switches it off."""
        percent = self._whole("set_prefetch_threshold", percent=percent)
        if not 0 <= percent <= NO_TREE:
            raise PolicyError(
                f"{self._name} must set a prefetch threshold from 0 to {NO_TREE}, got {percent}"
            )
        self._request(ASK_THRESHOLD, percent)

    # What a mechanism supplies beside the look-ups above

    @abstractmethod
    def _touched(self, region: int) -> NDArray[Any]:
        """Return which pages of the region were touched since they came near."""

    def _accesses(self) -> int:
        """Return the accesses of the latest notification."""
        return 0  # of a mechanism without counters

    def _now(self) -> int:
        """Return the number of touches so far."""
        raise NotImplementedError

    @abstractmethod
    def _request(self, verb: int, *words: int) -> None:
        """Keep a request (events.py) until the policy's call returns."""

    def _existing(self, region: int) -> int:
        """Return a region's number for a look-up; refuse what NumPy would count from the end."""
        if 0 <= region < self.regions:
            return region
        raise IndexError(f"region must be 0 to {self.regions - 1}, got {region}")

    # Details

    def _whole(self, call: str, **given: Any) -> int:
        """Return the argument of a call as a whole number; refuse fractions and texts."""
        ((name, number),) = given.items()
        try:
            return index(number)
        except TypeError:
            raise PolicyError(
                f"{self._name} must give {call}() whole numbers, got {name} = {number!r}"
            ) from None

    def _check_resident(self, verb: str, region: int) -> int:
        region = self._whole(verb, region=region)
        if not 0 <= region < self.regions or not self.is_resident(region):
            raise PolicyError(
                f"{self._name} must {verb} a resident region, "
                f"got region {region}, which is not resident"
            )
        return region

    def _check_pages(self, verb: str, first: int, pages: int) -> tuple[int, int]:
        first, pages = self._whole(verb, first_page=first), self._whole(verb, pages=pages)
        last = self._most_pages() - 1
        if pages < 1 or first < 0 or first + pages - 1 > last:
            raise PolicyError(
                f"{self._name} must {verb} pages within 0 to {last}, "
                f"got pages {first} to {first + pages - 1}"
            )
        return first, pages

    def _most_pages(self) -> int:
        return self.regions * self.geometry.pages_per_region

    def _refuse(self, what: str, needed: str, *arguments: int) -> None:
        raise PolicyError(
            f"{self._name} must declare sees = {needed} to use memory.{what}, "
            f"got sees = {self._declared}"
        )


def _open_levels(sees: Sees) -> tuple[str, ...]:
    """Return the levels of ``_RESTRICTED`` that are open to a policy with this ``sees``."""
    if isinstance(sees, Everything):
        return tuple(_RESTRICTED)[: None if sees.future else -1]
    return (f"{type(sees).__name__}()",)
