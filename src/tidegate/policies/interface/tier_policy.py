"""Tiering policies: where does a page go that leaves near memory?

    asked     place(page) → STAY, MIDDLE or FAR · victim() and spill(), if the policy chooses pages
    relayed   on_return · on_samples · on_touch                        define those you need
    seen      self.memory, a TierView: now, left(page), room in the middle, pairs, next_use(page)

A class of this kind knows no mechanism: it works on simulated tiers and on live memory, which both
offer a TierView. What a mechanism does for a miss, in this order:

    on_return(page)     if the page left near memory before
    place(candidate)    if near memory is full; STAY: the next candidate, until one has to go
    spill()             if that one goes to a full middle and makes_room is ASKED
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from tidegate.policies.interface.policy import Policy

STAY, MIDDLE, FAR = 0, 1, 2  # where a page goes

# Which page leaves a middle that is full when another page is to go there.
NOBODY = 0  # none: the newcomer goes far instead
OLDEST = 1  # the page that is longest in the middle
ASKED = 2  # the page that ``spill`` names

NEVER = 2**31 - 1  # the next use of a page that is not used again


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
        """Return when this page is touched next, in virtual time; NEVER if it is not.

        It needs ``sees = Everything(future=True)``.
        """


class TierPolicy(Policy):
    """Decides where a page goes that leaves near memory.

    >>> class Alternate(TierPolicy):
    ...     def place(self, page):
    ...         return MIDDLE if page % 2 else FAR
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
    def makes_room(self) -> int:
        """Which page leaves a full middle: NOBODY, OLDEST, or the one ``spill`` names (ASKED)."""
        return OLDEST

    def sampling(self, near: int) -> tuple[int, int, int]:
        """Return pairs in a batch, pairs in all, and that one page in so many is sampled.

        (0, 0, 1) is for none. A mechanism that cannot measure reuse distances never calls
        ``on_samples``.
        """
        return 0, 0, 1

    @abstractmethod
    def place(self, page: int) -> int:
        """Return STAY, MIDDLE or FAR, for a near page that is a candidate to leave."""

    def on_return(self, page: int) -> int | None:
        """Handle that this page, which had left near memory, is about to come back.

        Return STAY if it is known already that the page stays whenever it is a candidate: then
        ``place`` is not called for it.
        """

    def on_samples(self) -> None:
        """Handle a new batch, ``self.memory.pairs``."""

    def on_touch(self, page: int) -> None:
        """Handle a touch of this page, which is near. Costs a call per touch."""
