"""The memory view: what a mechanism shows one policy, and the verbs it accepts from it.

    policy ── looks ──▶ MemoryView ── as declared in ``sees`` ──▶ look-ups of the mechanism
           ── verbs ──▶            ── within ranges          ──▶ requests, executed after the call

This is the one declaration of ``self.memory``. Permissions and ranges are checked here, for
simulated and live memory alike. A mechanism supplies look-ups: simulation/gpu/view.py,
simulation/tiers/view.py and live/pager/view.py. Compiled policies get the same names, levels and
verbs (policy_compiler/gpu_surface.py); experiments/planning.py records requests only.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import partial
from operator import index
from typing import Any, NamedTuple

from numpy.typing import NDArray

from tidegate.errors import PolicyError
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
from tidegate.policies.interface.forecast import Costs, Forecast
from tidegate.policies.interface.visibility import Everything, Sees
from tidegate.trace.geometry import Geometry
from tidegate.trace.plan import Plan
from tidegate.trace.trace import Object

# What a policy must declare to use these names. All others are open to every policy.
NEEDS = {
    **dict.fromkeys(("observe_prefetched", "count_remote", "accesses"), "Samples()"),
    "touched": "TouchBits()",
    **dict.fromkeys(
        ("now", "last_touch", "page_touches", "last_reference", "last_toucher", "touch_count"),
        "Everything()",
    ),
    "next_touch": "Everything(future=True)",
}


class Verb(NamedTuple):
    """The number of a request (events.py), and what its arguments are."""

    request: int
    takes: str


# what verbs take
PAGES = "a range of pages"
ADVICE_OF_PAGES = "a range of pages, and advice"
RESIDENT = "a resident region"
REGION = "a region"
COUNT = "accesses, the pages of a granule, and whether each page used is notified"
PERCENT = "a percentage, or NO_TREE"

VERBS = {
    "prefetch": Verb(ASK_PREFETCH, PAGES),
    "evict": Verb(ASK_EVICT, RESIDENT),
    "prefetch_async": Verb(ASK_PREFETCH_ASYNC, PAGES),
    "evict_async": Verb(ASK_EVICT_ASYNC, RESIDENT),
    "discard": Verb(ASK_DISCARD, RESIDENT),
    "advise": Verb(ASK_ADVISE, ADVICE_OF_PAGES),
    "observe_prefetched": Verb(ASK_OBSERVE, REGION),
    "count_remote": Verb(ASK_COUNT, COUNT),
    "set_prefetch_threshold": Verb(ASK_THRESHOLD, PERCENT),
}
VERB_NAMES = {verb.request: name for name, verb in VERBS.items()}


class MemoryView:
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
        self._refused = {name for name, level in NEEDS.items() if not _is_open(level, shown)}
        for name in self._refused:
            if callable(getattr(type(self), name)):  # checked once, not in each call
                setattr(self, name, partial(self._refuse, name))

    # For every policy

    @property
    def objects(self) -> tuple[Object, ...]:
        """Allocations, by address."""
        raise self._not_offered("objects")

    @property
    def regions(self) -> int:
        """Number of regions in all."""
        raise self._not_offered("regions")

    @property
    def plan(self) -> Plan | None:
        """What each launch uses, by a compiler or a profile; None if launches are not known."""
        raise self._not_offered("plan")

    @property
    def forecast(self) -> Forecast:
        """What each launch uses, piece by piece. Refused where launches are not known."""
        raise PolicyError(f"{self._name} needs a program whose launches are known in advance")

    @property
    def costs(self) -> Costs | None:
        """What moving and using data takes here; None if the mechanism does not know."""
        return None

    @property
    def resident(self) -> set[int]:
        """Regions that hold a frame."""
        raise self._not_offered("resident")

    def is_resident(self, region: int) -> bool:
        """Return whether the region holds a frame."""
        raise self._not_offered("is_resident")

    def is_served(self, region: int) -> bool:
        """Return whether the region was served in the driver's current turn.

        A victim that was served ends the turn early.
        """
        raise self._not_offered("is_served")

    def faulted(self, region: int) -> NDArray[Any]:
        """Return pages (numbers within the region) that faulted in this turn; during on_fault."""
        raise self._not_offered("faulted")

    def near(self, region: int) -> NDArray[Any]:
        """Return which pages of the region are near, as booleans."""
        raise self._not_offered("near")

    def prefetched(self, region: int) -> NDArray[Any]:
        """Return which pages of the region will migrate without a fault; during on_prefetch."""
        raise self._not_offered("prefetched")

    # Samples

    @property
    def accesses(self) -> int:
        """Accesses over the link that a counter had seen when its notification was served.

        During on_notification of a placement policy.
        """
        if "accesses" in self._refused:
            self._refuse("accesses")
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
        if "now" in self._refused:
            self._refuse("now")
        return self._now()

    def last_touch(self, region: int) -> int:
        """Return the number of the region's latest touch, -1 if there was none."""
        raise self._not_offered("last_touch")

    def page_touches(self, region: int) -> NDArray[Any]:
        """Return the number of each page's latest touch, -1 where there was none."""
        raise self._not_offered("page_touches")

    def last_reference(self, page: int) -> int:
        """Return the access site that touched this page last, -1 if there was none."""
        raise self._not_offered("last_reference")

    def last_toucher(self, region: int) -> int:
        """Return the access site that made the region's latest touch, -1 if there was none."""
        raise self._not_offered("last_toucher")

    def touch_count(self, region: int) -> int:
        """Return how often the region was touched so far."""
        raise self._not_offered("touch_count")

    def next_touch(self, region: int) -> int:
        """Return when the region is touched next, in touches from the start; very large if never.

        Everything(future=True).
        """
        raise self._not_offered("next_touch")

    # The verbs

    def prefetch(self, first_page: int, pages: int = 1) -> None:
        """Bring these pages near, but for those that are near already."""
        self._ask("prefetch", first_page, pages)

    def evict(self, region: int) -> None:
        """Send this region far before its frame is needed."""
        self._ask("evict", region)

    def prefetch_async(self, first_page: int, pages: int = 1) -> None:
        """Bring these pages near by the inward copy stream, beside the kernels.

        A touch of a page on its way waits for it and does not fault.
        """
        self._ask("prefetch_async", first_page, pages)

    def evict_async(self, region: int) -> None:
        """Send this region far by the outward copy stream; its frame is free when the copy ends.

        A fault or prefetch of the region before the copy begins cancels it.
        """
        self._ask("evict_async", region)

    def discard(self, region: int) -> None:
        """Drop this region, whose data are dead: nothing is written back, its pages are unwritten.

        Policies get ``on_free``.
        """
        self._ask("discard", region)

    def advise(self, first_page: int, pages: int, prefer: str | None) -> None:
        """Set where these pages live: "far" maps them remotely, so that they never fault.

        None takes it back. "read-mostly": far memory keeps a copy of near pages, so that clean ones
        are dropped, not written back; "read-write" takes it back.
        """
        self._ask("advise", first_page, pages, prefer)

    def observe_prefetched(self, region: int) -> None:
        """Leave one page of this region far, of those about to be prefetched, to notice its use.

        Samples.
        """
        self._ask("observe_prefetched", region)

    def count_remote(self, accesses: int, pages: int = 0, each: int = 0) -> None:
        """Notify when a region had so many remote accesses, while counters last; 0 stops it.

        With ``pages`` a counter counts for a *granule* of so many pages, and on_notification gets
        the granule's number instead of a region's. With ``each`` it gets the number of each page
        of the granule that had some of these accesses, one after another. Samples.
        """
        self._ask("count_remote", accesses, pages, each)

    def set_prefetch_threshold(self, percent: int) -> None:
        """Let tree prefetch take subtrees more than this occupied; 101 switches it off."""
        self._ask("set_prefetch_threshold", percent)

    # What a mechanism supplies beside the look-ups above

    def _touched(self, region: int) -> NDArray[Any]:
        """Return which pages of the region were touched since they came near."""
        raise self._not_offered("touched")

    def _accesses(self) -> int:
        """Return the accesses of the latest notification."""
        return 0  # of a mechanism without counters

    def _now(self) -> int:
        """Return the number of touches so far."""
        raise self._not_offered("now")

    def _request(self, request: int, *words: int) -> None:
        """Keep a request (events.py) until the policy's call returns."""
        raise self._not_offered(VERB_NAMES[request])

    def _existing(self, region: int) -> int:
        """Return a region's number for a look-up; refuse what NumPy would count from the end."""
        if 0 <= region < self.regions:
            return region
        raise IndexError(f"region must be 0 to {self.regions - 1}, got {region}")

    # Arguments of the verbs

    def _ask(self, name: str, *arguments: Any) -> None:
        """Check the arguments of a verb, and request it."""
        verb = VERBS[name]
        self._request(verb.request, *_CHECKS[verb.takes](self, name, *arguments))

    def _check_pages(self, verb: str, first: int, pages: int) -> tuple[int, int]:
        first, pages = self._whole(verb, first_page=first), self._whole(verb, pages=pages)
        last = self._most_pages() - 1
        if pages < 1 or first < 0 or first + pages - 1 > last:
            raise PolicyError(
                f"{self._name} must {verb} pages within 0 to {last}, "
                f"got pages {first} to {first + pages - 1}"
            )
        return first, pages

    def _check_advice(self, verb: str, first: int, pages: int, prefer: Any) -> tuple[int, int, int]:
        if prefer not in ADVICE:
            raise PolicyError(
                f"{self._name} must advise 'far', None, 'read-mostly' or 'read-write', "
                f"got {prefer!r}"
            )
        return (*self._check_pages(verb, first, pages), ADVICE[prefer])

    def _check_resident(self, verb: str, region: int) -> tuple[int]:
        region = self._whole(verb, region=region)
        if not 0 <= region < self.regions or not self.is_resident(region):
            raise PolicyError(
                f"{self._name} must {verb} a resident region, "
                f"got region {region}, which is not resident"
            )
        return (region,)

    def _check_region(self, verb: str, region: int) -> tuple[int]:
        region = self._whole(verb, region=region)
        if not 0 <= region < self.regions:
            raise PolicyError(
                f"{self._name} must observe a region within 0 to {self.regions - 1}, got {region}"
            )
        return (region,)

    def _check_count(self, verb: str, accesses: int, pages: int, each: int) -> tuple[int, int, int]:
        accesses = self._whole(verb, accesses=accesses)
        if not 0 <= accesses <= MOST_ACCESSES:
            raise PolicyError(
                f"{self._name} must count remote accesses from 0 to {MOST_ACCESSES}, got {accesses}"
            )
        pages, most = self._whole(verb, pages=pages), self._most_pages()
        if not 0 <= pages <= most:
            raise PolicyError(
                f"{self._name} must count by granules of 0 to {most} pages, got {pages}"
            )
        if self._whole(verb, each=each) not in (0, 1):
            raise PolicyError(
                f"{self._name} must be notified of each page (1) or of granules (0), got {each}"
            )
        return accesses, pages, index(each)

    def _check_percent(self, verb: str, percent: int) -> tuple[int]:
        percent = self._whole(verb, percent=percent)
        if not 0 <= percent <= NO_TREE:
            raise PolicyError(
                f"{self._name} must set a prefetch threshold from 0 to {NO_TREE}, got {percent}"
            )
        return (percent,)

    def _whole(self, call: str, **given: Any) -> int:
        """Return the argument of a call as a whole number; refuse fractions and texts."""
        ((name, number),) = given.items()
        try:
            return index(number)
        except TypeError:
            raise PolicyError(
                f"{self._name} must give {call}() whole numbers, got {name} = {number!r}"
            ) from None

    def _most_pages(self) -> int:
        return self.regions * self.geometry.pages_per_region

    # Refusals

    def _refuse(self, name: str, *arguments: int) -> None:
        raise PolicyError(
            f"{self._name} must declare sees = {NEEDS[name]} to use memory.{name}, "
            f"got sees = {self._declared}"
        )

    def _not_offered(self, name: str) -> PolicyError:
        return PolicyError(
            f"{self._name} must not use memory.{name}, which this memory does not offer"
        )


_CHECKS: dict[str, Callable[..., tuple[int, ...]]] = {
    PAGES: MemoryView._check_pages,
    ADVICE_OF_PAGES: MemoryView._check_advice,
    RESIDENT: MemoryView._check_resident,
    REGION: MemoryView._check_region,
    COUNT: MemoryView._check_count,
    PERCENT: MemoryView._check_percent,
}


def _is_open(level: str, sees: Sees) -> bool:
    """Return whether a level of NEEDS is open to a policy with this ``sees``."""
    if isinstance(sees, Everything):
        return sees.future or level != "Everything(future=True)"
    return level == f"{type(sees).__name__}()"
