"""SHARDS: a sample of ids, chosen by hash, represents all (Waldspurger et al., FAST 2015).

Fixed rate R: an id is sampled, with all its touches, if its hash falls below R of the hash's range.
A distance among the sampled ids is R times that among all. With the paper's adjustment
(SHARDS-adj): touches that the sample lacks, or has in excess, are those of a few hot ids, so the
difference is corrected at distance 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.analysis.curves import MissRatioCurve
from tidegate.analysis.reuse import ReuseDistances
from tidegate.analysis.sequence import Ids, Sequence, Unit, empty
from tidegate.compiled.jit import jit
from tidegate.errors import TidegateError
from tidegate.trace import Trace

MODULUS = 1 << 24  # the paper's: rates are multiples of 1 / MODULUS


def shards_curve(
    trace: Trace,
    rate: float,
    seed: int = 0,
    unit: Unit = "region",
    progress: Callable[[int], None] = lambda touches: None,
) -> MissRatioCurve:
    """Return the LRU curve, sampled at ``rate``.

    Its error falls with 1 / √(ids sampled). The seed selects the ids.
    """
    sequence = Sequence(trace, unit)
    sample = Shards(sequence.bound, rate, seed)
    for ids in sequence:
        sample.update(ids)
        progress(len(ids))
    if not sample.touches:
        raise empty(trace)
    return sample.curve(sequence.unit_bytes)


class Shards:
    """A sampled miss-ratio curve of the ids so far, which may come in any chunks."""

    def __init__(self, bound: int, rate: float, seed: int = 0):
        if not 0 < rate <= 1:
            raise TidegateError(
                f"sampling rate must be above 0 and at most 1, such as 0.01, got {rate}"
            )
        self.rate = rate
        self.touches = 0
        self._threshold = max(round(rate * MODULUS), 1)
        sampled = _hash(bound, seed) % np.uint64(MODULUS) < self._threshold
        # sampled ids are numbered from 0, so that their distances take only their share of memory
        self._number = np.where(sampled, np.cumsum(sampled) - 1, -1).astype(np.int32)
        self._reuse = ReuseDistances(int(sampled.sum()))

    def update(self, ids: Ids) -> None:
        """Add touches. Ids must be below the bound."""
        kept = np.empty(len(ids), np.int32)
        self._reuse.update(kept[: _sample(ids, self._number, kept)])
        self.touches += len(ids)

    def curve(self, unit_bytes: int) -> MissRatioCurve:
        """Return the curve, at the capacities where the sample has a step."""
        if not self._reuse.touches:
            raise TidegateError(
                f"SHARDS at rate {self.rate:g} sampled nothing that is touched; raise the rate"
            )
        expected = self.touches * self._threshold / MODULUS
        counts = self._reuse.counts[: self._reuse.farthest + 1].astype(np.float64)
        counts[0] += expected - self._reuse.touches
        scaled = (expected - np.cumsum(counts)) * (MODULUS / self._threshold)
        misses = np.rint(np.clip(scaled, 0, self.touches)).astype(np.int64)
        # a touch at distance d hits in the sample's share of C frames if d < C R: from ⌊d / R⌋ + 1
        capacities = np.arange(len(counts), dtype=np.int64) * MODULUS // self._threshold + 1
        return MissRatioCurve(unit_bytes, capacities, misses, self.touches)


def _hash(bound: int, seed: int) -> NDArray[np.uint64]:
    """Return SplitMix64 of the ids below ``bound``."""
    x = np.arange(bound, dtype=np.uint64) + np.uint64(seed % 2**32 << 32)
    x += np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@jit
def _sample(ids: Any, number: Any, kept: Any) -> int:
    k = np.uint64(0)
    for i in range(len(ids)):
        n = number[np.uint64(ids[i])]
        # always written, kept only if the next write goes elsewhere: no branch to predict
        kept[k] = n
        k += np.uint64(n >= 0)
    return int(k)
