"""Placement over three tiers: where does a page go that leaves near memory?

    asked     place(page) → STAY, MIDDLE or FAR · victim() and spill(), for those who choose pages themselves
    relayed   on_return · on_samples · on_touch                        define those you need
    seen      self.memory: now, left(page), room in the middle, the batch of pairs, next_use(page)

A class of this kind knows no mechanism: it works on the simulated tiers, and on live memory whoever offers a TierView.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from tidegate.mechanism.tiers.events import FAR, MIDDLE, NOBODY, OLDEST, STAY
from tidegate.policies.policy import Policy

__all__ = ["FAR", "MIDDLE", "NOBODY", "OLDEST", "STAY", "TierPolicy", "TierTwin", "TierView"]


class TierView(Protocol):
    """What tiers, simulated or live, show a placement policy."""

    near_pages: int  # capacities
    middle_pages: int

    @property
    def now(self) -> int:
        """Touches so far: virtual time."""

    @property
    def middle_used(self) -> int:
        """Pages in the middle."""

    @property
    def pairs(self) -> NDArray[np.int64]:
        """The batch of (virtual time, reuse distance) pairs; during on_samples."""

    def left(self, page: int) -> int:
        """The touch at which this page left near memory last, 0 if it never did."""

    def next_use(self, page: int) -> int:
        """When this page is touched next; very large if never. Everything(future)."""


class TierTwin:
    """Names a placement's compiled twin, a C function ``int64 (own, event)`` made with ``@jit_policy``."""

    def __init__(self, function: Any):
        self.function = function


class TierPolicy(Policy):
    """Decides where a page goes that leaves near memory."""

    memory: TierView  # type: ignore[assignment]
    keeps_middle: ClassVar[bool] = True  # False: there are two tiers only
    service: ClassVar[str] = "gpu"  # who serves misses: many at once ("gpu"), or one after another ("cpu")
    compiled: ClassVar[TierTwin | None] = None

    @property
    def makes_room(self) -> int:
        """Who leaves a middle that is full: NOBODY (the newcomer goes far), the OLDEST, or ASKED (``spill``)."""
        return OLDEST

    def sampling(self, near: int) -> tuple[int, int, int]:
        """Pairs in a batch, pairs in all, and that one page in so many is sampled; (0, 0, 1) for none."""
        return 0, 0, 1

    @abstractmethod
    def place(self, page: int) -> int:
        """STAY, MIDDLE or FAR, for a near page that is a candidate to leave."""

    def on_return(self, page: int) -> None:
        """This page, which had left near memory, is about to come back."""

    def on_samples(self) -> None:
        """``self.memory.pairs`` is a new batch."""

    def on_touch(self, page: int) -> None:
        """This page is touched, and near. Costs a call per touch."""

    def own_words(self, pages: int, near: int, middle: int) -> NDArray[np.int64]:
        """The twin's own words at the beginning of a run."""
        return np.zeros(0, np.int64)

    def take_back(self, own: NDArray[np.int64]) -> None:
        """After a run with the twin: what ``report`` needs of its words."""
