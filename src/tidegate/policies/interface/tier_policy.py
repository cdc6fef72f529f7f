"""Tiering policies: where does a page go that leaves near memory?

    asked     place(page) → a Tier · victim() and spill(), if the policy chooses pages
    relayed   on_return · on_samples · on_touch                        define those you need
    seen      self.memory, a TierView: now, left(page), room in the middle, pairs, next_use(page)

A class of this kind knows no mechanism: it works on simulated tiers and on live memory, which both
offer a TierView. What a mechanism does for a miss, in this order:

    on_return(page)     if the page left near memory before
    place(candidate)    if near memory is full; Tier.STAY: the next candidate, until one has to go
    spill()             if that one goes to a full middle and makes_room is Spill.ASKED
"""

from __future__ import annotations

from abc import abstractmethod
from enum import IntEnum
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from tidegate.policies.interface.policy import Policy


class Tier(IntEnum):
    """Where a page goes that is a candidate to leave near memory."""

    STAY = 0
    MIDDLE = 1
    FAR = 2


class Spill(IntEnum):
    """Which page leaves a middle that is full when another page is to go there."""

    NOBODY = 0  # none: the newcomer goes far instead
    OLDEST = 1  # the page that is longest in the middle
    ASKED = 2  # the page that ``spill`` names


# Events from the tiers to a policy: the kind in the low 8 bits, a page above them
PLACE = 0  # where does this page go, a candidate to leave? answer: a Tier
VICTIM = 1  # which near page is to leave? for policies that choose victims; answer: a page
SPILL = 2  # which page leaves the full middle? answer: a page
RETURN = 3  # this page returns near; answer: KNOWN if it stays whenever it is a candidate
SAMPLES = 4  # a batch of (virtual time, reuse distance) pairs is full
TOUCH = 5  # this page is touched; only for policies that define on_touch: a call per touch

EVENT_BITS = 8
EVENT_NAMES = {
    PLACE: "place",
    VICTIM: "victim",
    SPILL: "spill",
    RETURN: "on_return",
    SAMPLES: "on_samples",
    TOUCH: "on_touch",
}

FAILED = -1  # the policy raised; its caller keeps the exception
KNOWN = 1

NEVER = 2**31 - 1  # the next use of a page that is not used again


NEEDS = {"next_use": "Everything(future=True)"}  # what a policy must declare to use a name


class TierView(Protocol):
    """What tiers, simulated or live, show a tiering policy."""

    near_pages: int  # capacities
    middle_pages: int

    @property
    def now(self) -> int:
        """Virtual time: touches so far, as far as the mechanism notices them."""

    @property
    def middle_used(self) -> int:
        """Pages in the middle."""

    @property
    def pairs(self) -> NDArray[np.int64]:
        """The batch of (virtual time, reuse distance) pairs; during on_samples."""

    def left(self, page: int) -> int:
        """Return when this page left near memory last, in virtual time; 0 if it never did."""

    def next_use(self, page: int) -> int:
        """Return when this page is touched next, in virtual time; NEVER if it is not."""


class TierPolicy(Policy):
    """Decides where a page goes that leaves near memory.

    >>> class Alternate(TierPolicy):
    ...     def place(self, page):
    ...         return Tier.MIDDLE if page % 2 else Tier.FAR
    """

    memory: TierView  # type: ignore[assignment]
    keeps_middle: ClassVar[bool] = True  # False: there are two tiers only
    # how misses are served: many at once ("gpu"), or one after another ("cpu")
    service: ClassVar[str] = "gpu"

    def attach(self, memory: TierView) -> None:  # type: ignore[override]
        """Set ``memory``; the mechanism calls it before each run."""
        self.memory = memory

    @property
    def inclusive(self) -> bool:
        """Whether the middle is a page cache: it keeps copies of near pages, and what the SSD reads
        passes through it. A clean victim without a copy is dropped.
        """
        return False

    @property
    def read_ahead_pages(self) -> int:
        """How many pages, aligned, an SSD read brings to an inclusive middle."""
        return 1

    @property
    def makes_room(self) -> Spill:
        """Which page leaves a full middle: nobody, the oldest, or the one that ``spill`` names."""
        return Spill.OLDEST

    def sampling(self, near: int) -> tuple[int, int, int]:
        """Return pairs in a batch, pairs in all, and that one page in so many is sampled.

        (0, 0, 1) is for none. A mechanism that cannot measure reuse distances never calls
        ``on_samples``.
        """
        return 0, 0, 1

    @abstractmethod
    def place(self, page: int) -> int:
        """Return a Tier for a near page that is a candidate to leave."""

    def on_return(self, page: int) -> int | None:
        """Handle that this page, which had left near memory, is about to come back.

        Return Tier.STAY if it is known already that the page stays whenever it is a candidate: then
        ``place`` is not called for it.
        """

    def on_samples(self) -> None:
        """Handle a new batch, ``self.memory.pairs``."""

    def on_touch(self, page: int) -> None:
        """Handle a touch of this page, which is near. Costs a call per touch."""
