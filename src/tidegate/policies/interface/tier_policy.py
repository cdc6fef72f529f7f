"""Placement over three tiers: where does a page go that leaves near memory?

    asked     place(page) → STAY, MIDDLE or FAR · victim() and spill(), of those who choose pages themselves
    relayed   on_return · on_samples · on_touch                        define those you need
    seen      self.memory, a TierView: now, left(page), room in the middle, pairs, next_use(page)

A class of this kind knows no mechanism: it works on simulated tiers, and on live memory, whoever
offers a TierView. What a mechanism does for a miss, in this order:

    on_return(page)          if the page left near memory before
    place(candidate)         if near memory is full; STAY: another candidate is asked about, until one has to go
    spill()                  if that one goes to a full middle and makes_room is ASKED
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from tidegate.policies.interface.policy import Policy

STAY, MIDDLE, FAR = 0, 1, 2  # where a page goes

# Who leaves a middle that is full when another page is to go there.
NOBODY = 0  # the newcomer goes far instead
OLDEST = 1  # the page that is longest in the middle
ASKED = 2  # the policy is asked (``spill``)


class TierView(Protocol):
    """What tiers, simulated or live, show a placement policy."""

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
        """When this page left near memory last, in virtual time; 0 if it never did."""

    def next_use(self, page: int) -> int:
        """When this page is touched next, in virtual time; very large if never.

        Everything(future).
        """


class TierPolicy(Policy):
    """Decides where a page goes that leaves near memory.

    >>> class Alternate(TierPolicy):
    ...     def place(self, page):
    ...         return MIDDLE if page % 2 else FAR
    """

    memory: TierView  # type: ignore[assignment]
    keeps_middle: ClassVar[bool] = True  # False: there are two tiers only
    # who serves misses: many at once ("gpu"), or one after another ("cpu")
    service: ClassVar[str] = "gpu"
    compiled: ClassVar[TierTwin | None] = None

    def attach(self, memory: TierView) -> None:  # type: ignore[override]
        """Called by the mechanism before each run."""
        self.memory = memory

    @property
    def makes_room(self) -> int:
        """Who leaves a middle that is full: NOBODY, the OLDEST, or whom ``spill`` names (ASKED)."""
        return OLDEST

    def sampling(self, near: int) -> tuple[int, int, int]:
        """Pairs in a batch, pairs in all, and that one page in so many is sampled; (0, 0, 1) for
        none.

        A mechanism that cannot measure reuse distances never calls ``on_samples``.
        """
        return 0, 0, 1

    @abstractmethod
    def place(self, page: int) -> int:
        """STAY, MIDDLE or FAR, for a near page that is a candidate to leave."""

    def on_return(self, page: int) -> int | None:
        """This page, which had left near memory, is about to come back.

        Who knows already that the page will STAY whenever it is a candidate may say so here, and
        need not be asked.
        """

    def on_samples(self) -> None:
        """``self.memory.pairs`` is a new batch."""

    def on_touch(self, page: int) -> None:
        """This page is touched, and near. Costs a call per touch."""


class TierTwin:
    """Names a placement's compiled twin, a C function ``int64 (own, event)`` made with
    ``@jit_policy``.

    ``words(policy, pages, near, middle)``: its own words at the beginning of a run.
    ``results(policy, words)``: called with them at the end, for the sake of ``report``. Events and
    what lies before the words: policies/interface/tier_events.py, header.py.
    """

    def __init__(
        self,
        function: Any,
        words: Callable[
            [Any, int, int, int], NDArray[np.int64]
        ] = lambda policy, pages, near, middle: np.zeros(0, np.int64),
        results: Callable[[Any, NDArray[np.int64]], None] = lambda policy, words: None,
    ):
        self.function, self.words, self.results = function, words, results
