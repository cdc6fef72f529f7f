"""Three tiers on live memory: a tiering policy decides where a page goes that leaves near memory.

    fault    ──▶ on_return, if the page was near before; a page in the middle leaves it
    victim   ──▶ place ──▶ STAY: another candidate · MIDDLE: if room can be made · FAR

It decides as simulation/tiers/engine.py does. Virtual time is the uses that live memory notices:
faults and notifications. Reuse distances are not measured, so ``on_samples`` is never called.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.live.pager.calls import Call, PolicyCalls, PolicyFailure
from tidegate.live.pager.policies import blame
from tidegate.policies.interface.tier_policy import Spill, Tier, TierPolicy

MOST_STAYS = 64  # candidates that may stay before one has to go, as in the simulation
COUNTS = ("to_middle", "to_far", "middle_hits", "far_reads", "middle_spilled", "stays")


class LiveTiers:
    """The ``memory`` of a tiering policy (a TierView), and its decisions.

    ``budget``: units of the middle tier.
    """

    def __init__(
        self,
        policy: TierPolicy,
        near_pages: int,
        page_units: int,
        budget: int,
        calls: PolicyCalls | None = None,
    ):
        self.policy, self.near_pages = policy, near_pages
        self._calls = calls or PolicyCalls()
        self.middle_pages = budget // page_units if policy.keeps_middle else 0
        self._budget = budget if policy.keeps_middle else 0
        # pages in the middle and their units, the oldest first
        self._inside: OrderedDict[int, int] = OrderedDict()
        self._used = 0  # units
        self._left: dict[int, int] = {}  # when a page left near memory
        self._faulted: set[int] = set()  # pages whose return the policy knows of already
        self._placed: dict[int, int] = {}  # decisions for pages about to be evicted
        self.now = 0
        self.count = dict.fromkeys(COUNTS, 0)
        policy.attach(self)
        self._ask("start")

    # What the policy sees

    @property
    def middle_used(self) -> int:
        return len(self._inside)

    @property
    def pairs(self) -> NDArray[np.int64]:
        return np.zeros((0, 2), np.int64)

    def left(self, page: int) -> int:
        return self._left.get(page, 0)

    def next_use(self, page: int) -> int:
        raise PolicyFailure(
            "tiering",
            f"{self.policy.name} asks for the next use of a page, which live memory cannot know",
        )

    # Events

    def note_use(self) -> None:
        """Count a use that was noticed."""
        self.now += 1

    def note_fault(self, page: int) -> None:
        """Note that a page is about to be loaded."""
        if page in self._faulted:
            return
        self._faulted.add(page)
        if page in self._left:
            self._ask("on_return", page)
        if page in self._inside:
            self._used -= self._inside.pop(page)
            self.count["middle_hits"] += 1
        else:
            self.count["far_reads"] += 1

    def note_loaded(self, page: int) -> None:
        """Note that a page is being loaded."""
        self.note_fault(page)
        self._faulted.discard(page)

    def stays(self, page: int) -> bool:
        """Return whether this candidate stays near; if not, keep the decision for ``leaves``."""
        self._placed[page] = to = self._place(page)
        if to == Tier.STAY:
            self.count["stays"] += 1
            del self._placed[page]
        return to == Tier.STAY

    def must_leave(self, page: int) -> None:
        """Send this candidate to the middle after all: too many have stayed."""
        self._placed[page] = Tier.MIDDLE
        self.count["stays"] -= 1

    def leaves(self, page: int) -> bool:
        """Note that a page leaves near memory; return whether it goes to the middle."""
        to = self._placed.pop(page) if page in self._placed else self._place(page)
        self._left[page] = self.now
        return to != Tier.FAR and self._budget > 0  # a page of a region that leaves cannot stay

    def make_room(self, units: int, spill: Callable[[int], None]) -> bool:
        """Make room for so many units in the middle; return whether there is."""
        full = self._used + units > self._budget
        if units > self._budget or (full and self.policy.makes_room == Spill.NOBODY):
            return False
        while self._used + units > self._budget:
            if self.policy.makes_room == Spill.OLDEST:
                page = next(iter(self._inside))
            else:
                page = self._ask("spill")
            if page not in self._inside:
                raise PolicyFailure(
                    "tiering",
                    f"{self.policy.name} named page {page} to leave the middle, where it is not",
                )
            spill(page)
            self.forget(page)
            self.count["middle_spilled"] += 1
        return True

    def note_placed(self, page: int, units: int) -> None:
        """Note that a page went to the middle, where it takes so many units, or far (0)."""
        self.count["to_middle" if units else "to_far"] += 1
        if units:
            self.note_inside(page, units)

    def note_inside(self, page: int, units: int) -> None:
        """Note that a page is in the middle, as the newest."""
        self._inside[page] = units
        self._used += units

    def forget(self, page: int) -> None:
        """Note that a page is not in the middle any more."""
        self._used -= self._inside.pop(page, 0)
        self._faulted.discard(page)

    def note_dropped(self, page: int) -> None:
        """Note that the page's object is gone."""
        self.forget(page)
        self._left.pop(page, None)

    def stats(self) -> dict[str, Any]:
        """Return counts, and how full the middle is."""
        return self.count | {"middle_pages": len(self._inside), "middle_units": self._used}

    def _ask(self, method: str, *argument: int) -> Any:
        """Return what the policy answers."""
        call = Call("tiering", method, argument[0] if argument else None)
        with self._calls.of(*call):
            try:
                return getattr(self.policy, method)(*argument)
            except BaseException as error:
                raise blame(self.policy, call, error) from error

    def _place(self, page: int) -> int:
        to: int = self._ask("place", page)
        if to not in tuple(Tier):
            raise PolicyFailure(
                "tiering",
                f"policy '{self.policy.name}' answered place({page}) with {to!r}; "
                "expected Tier.STAY, MIDDLE or FAR",
            )
        return to
