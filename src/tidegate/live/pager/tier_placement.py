"""Three tiers on live memory: a placement policy of policies/tiering decides where a page goes that
leaves near memory.

    a fault   ──▶ on_return, if the page was near before; what is in the middle gives up its place there
    a victim  ──▶ place ──▶ STAY: another candidate · MIDDLE: if there is room, or somebody makes some · FAR

It is the plain twin of simulation/tiers/engine.py, as engine.py is of the driver. Virtual time is
the uses that live memory notices: faults and notifications. Reuse distances are not measured, so
that ``on_samples`` is never called.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import PolicyError, TidegateError
from tidegate.policies.interface.tier_policy import FAR, MIDDLE, NOBODY, OLDEST, STAY, TierPolicy
from tidegate.policies.interface.visibility import Everything

MOST_STAYS = 64  # candidates that may stay before one has to go, as in the simulation
COUNTS = ("to_middle", "to_far", "middle_hits", "far_reads", "middle_spilled", "stays")


class LiveTiers:
    """The ``memory`` of a placement over tiers (a TierView), and its decisions.

    ``budget``: of the middle, in units.
    """

    def __init__(self, policy: TierPolicy, near_pages: int, page_units: int, budget: int):
        check_tiering(policy)
        self.policy, self.near_pages = policy, near_pages
        self.middle_pages = budget // page_units if policy.keeps_middle else 0
        self._budget = budget if policy.keeps_middle else 0
        # pages in the middle, the oldest first: their units
        self._inside: OrderedDict[int, int] = OrderedDict()
        self._used = 0  # units
        self._left: dict[int, int] = {}
        self._coming: set[int] = set()  # whose return is known already
        self._placed: dict[int, int] = {}  # answers that wait for their eviction
        self.now = 0
        self.count = dict.fromkeys(COUNTS, 0)
        policy.attach(self)
        policy.start()

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
        raise PolicyError(
            f"{self.policy.name} asks for the next use of a page, which live memory cannot know"
        )

    # What happens

    def noticed(self) -> None:
        """A page was used."""
        self.now += 1

    def returns(self, page: int) -> None:
        """A page is about to come near.

        Out of the middle first, so that the victim can have its room.
        """
        if page in self._coming:
            return
        self._coming.add(page)
        if page in self._left:
            self.policy.on_return(page)
        if page in self._inside:
            self._used -= self._inside.pop(page)
            self.count["middle_hits"] += 1
        else:
            self.count["far_reads"] += 1

    def returned(self, page: int) -> None:
        """It is on its way."""
        self.returns(page)
        self._coming.discard(page)

    def stays(self, page: int) -> bool:
        """Does this candidate stay? If not, where it goes is remembered for ``leaves``."""
        self._placed[page] = to = self._ask(page)
        if to == STAY:
            self.count["stays"] += 1
            del self._placed[page]
        return to == STAY

    def must_leave(self, page: int) -> None:
        """Too many candidates have stayed: this one goes to the middle, which is the nearest there
        is.
        """
        self._placed[page] = MIDDLE
        self.count["stays"] -= 1

    def leaves(self, page: int) -> bool:
        """The page leaves near memory. True: for the middle, if there is room."""
        to = self._placed.pop(page) if page in self._placed else self._ask(page)
        self._left[page] = self.now
        return to != FAR and self._budget > 0  # of a region that leaves no page can stay

    def make_room(self, units: int, spill: Callable[[int], None]) -> bool:
        """Is there room for so many units in the middle, after others have made some?"""
        if units > self._budget or (
            self._used + units > self._budget and self.policy.makes_room == NOBODY
        ):
            return False
        while self._used + units > self._budget:
            page = (
                next(iter(self._inside))
                if self.policy.makes_room == OLDEST
                else self.policy.spill()  # type: ignore[attr-defined]
            )
            if page not in self._inside:
                raise PolicyError(
                    f"{self.policy.name} named page {page} to leave the middle, where it is not"
                )
            spill(page)
            self.forget(page)
            self.count["middle_spilled"] += 1
        return True

    def went(self, page: int, units: int) -> None:
        """Where it went: to the middle, where it takes so many units; 0: far."""
        self.count["to_middle" if units else "to_far"] += 1
        if units:
            self.inside(page, units)

    def inside(self, page: int, units: int) -> None:
        """The page is in the middle, and the newest there."""
        self._inside[page] = units
        self._used += units

    def forget(self, page: int) -> None:
        """The page is not in the middle any more."""
        self._used -= self._inside.pop(page, 0)
        self._coming.discard(page)

    def gone(self, page: int) -> None:
        """The page's object is gone."""
        self.forget(page)
        self._left.pop(page, None)

    def stats(self) -> dict[str, Any]:
        """Counts, and what the middle holds."""
        return self.count | {"middle_pages": len(self._inside), "middle_units": self._used}

    def _ask(self, page: int) -> int:
        to = self.policy.place(page)
        if to not in (STAY, MIDDLE, FAR):
            raise PolicyError(
                f"policy '{self.policy.name}' answered place({page}) with {to!r}; expected STAY, MIDDLE or FAR"
            )
        return to


def check_tiering(policy: TierPolicy) -> None:
    """Live memory knows no future, and eviction policies choose the victims."""
    if isinstance(policy.sees, Everything) and policy.sees.future:
        raise TidegateError(
            f"policy '{policy.name}' sees the future, which no live memory can show; take tier-order or tier-reuse"
        )
    if hasattr(policy, "victim"):
        raise TidegateError(
            f"policy '{policy.name}' chooses victims itself; live, the eviction policy does; take tier-order"
        )
