"""Middle or far, by chance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.addresses import words_at
from tidegate.compiled.jit import jit, jit_policy
from tidegate.options import Option
from tidegate.policies.interface.tier_events import PLACE
from tidegate.policies.interface.tier_header import OWN
from tidegate.policies.interface.tier_policy import FAR, MIDDLE, TierPolicy, TierTwin
from tidegate.policies.registries import tiering

_SEED, _DRAWN, _SHARE = range(3)


@jit
def chance(seed: int, number: int) -> Any:
    """Number ``number`` of a repeatable sequence of chances, from 0 to below 1 (splitmix64)."""
    z = (np.uint64(seed) + np.uint64(1)) * np.uint64(0xD1342543DE82EF95) + np.uint64(
        number
    ) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return float((z ^ (z >> np.uint64(31))) >> np.uint64(11)) / 2.0**53


@jit_policy
def _random(own: int, event: int) -> int:
    if event & 255 != PLACE:
        return 0
    w = words_at(own + 8 * OWN, 3)
    w[_DRAWN] += 1
    return MIDDLE if 1_000_000 * chance(w[_SEED], w[_DRAWN]) < w[_SHARE] else FAR


@tiering("tier-random")
class TierRandom(TierPolicy):
    """A coin decides between the middle, whose oldest page makes room, and far (GMT-Random, 2.1.2)."""

    share = Option(0.5, "of victims that go to the middle", least=0, most=1)
    seed = Option(0, "of the random numbers", least=0)
    compiled = TierTwin(_random, lambda policy, pages, near, middle: policy.words())

    def start(self) -> None:
        self._drawn = 0

    def place(self, page: int) -> int:
        self._drawn += 1
        return (
            MIDDLE
            if 1_000_000 * chance(self.seed, self._drawn) < round(1_000_000 * self.share)
            else FAR
        )

    def words(self) -> NDArray[np.int64]:
        """The twin's own."""
        return np.array([self.seed, 0, round(1_000_000 * self.share)], np.int64)
