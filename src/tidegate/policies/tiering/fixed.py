"""Placements that learn nothing: TierOrder, where each tier holds the victims of the one above,
BaM, which has no middle, TierRandom, and Linux's HMM.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.policies.interface.tier_policy import Tier, TierPolicy
from tidegate.policies.registries import tiering


@tiering("tier-order")
class TierOrder(TierPolicy):
    """Every victim goes to the middle, whose oldest page makes room (GMT-TierOrder, 2.1.1).

    The paper has CLOCK in the middle in 2.1.1 and FIFO in 2.2. They are the same there: a page of
    the middle that is used leaves it, so no page is ever given a second chance.
    """

    def place(self, page: int) -> int:
        return Tier.MIDDLE


@tiering("bam")
class BaM(TierPolicy):
    """Near memory and the SSD, with nothing between (BaM, ASPLOS'23): GMT's baseline."""

    keeps_middle = False

    def place(self, page: int) -> int:
        return Tier.FAR


_PARTS = 1_000_000  # the share is rounded to so many parts


@jit
def chance(seed: int, number: int) -> Any:
    """Return number ``number`` of a repeatable sequence of chances, 0 to below 1 (splitmix64).

    It is compiled by itself because Python has no numbers that wrap at 64 bits.
    """
    z = (np.uint64(seed) + np.uint64(1)) * np.uint64(0xD1342543DE82EF95) + np.uint64(
        number
    ) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return float((z ^ (z >> np.uint64(31))) >> np.uint64(11)) / 2.0**53


@tiering("tier-random")
class TierRandom(TierPolicy):
    """Choose the middle, whose oldest page makes room, or far by a coin (GMT-Random, 2.1.2)."""

    share = Option(0.5, "share of victims that go to the middle", least=0, most=1)
    seed = Option(0, "seed of the random numbers", least=0)

    def start(self) -> None:
        self._drawn = 0
        self._to_middle = round(_PARTS * self.share)

    def place(self, page: int) -> int:
        self._drawn += 1
        middle = _PARTS * chance(self.seed, self._drawn) < self._to_middle
        return Tier.MIDDLE if middle else Tier.FAR


@tiering("hmm")
class HMM(TierPolicy):
    """The host's page cache is the middle, and the CPU serves every miss (GMT 3.6).

    What the SSD reads passes through the cache, which keeps it: near pages have copies there, so
    clean victims are dropped and dirty ones copied back. Linux reads 128 KiB around a page that is
    missing (``read_ahead_kb``). The oldest page makes room; Linux's second list is left out.
    """

    service = "cpu"
    cached = Option("inclusive", "copies of near pages in it", choices=("inclusive", "exclusive"))
    ahead = Option(2, "pages of 64 KiB that an SSD read brings", least=1, most=1024)

    @property
    def inclusive(self) -> bool:
        return bool(self.cached == "inclusive")

    @property
    def read_ahead_pages(self) -> int:
        return int(self.ahead)

    def place(self, page: int) -> int:
        return Tier.MIDDLE
