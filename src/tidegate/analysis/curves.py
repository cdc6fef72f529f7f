"""Miss-ratio curves: misses at each memory size, under LRU and under Belady's MIN."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidegate.analysis.belady import misses_of, next_uses
from tidegate.analysis.reuse import ReuseDistances
from tidegate.analysis.sequence import MOST_TOUCHES, Sequence, Unit, empty
from tidegate.errors import TidegateError
from tidegate.trace import Trace


@dataclass(frozen=True, eq=False)
class MissRatioCurve:
    """Misses by capacity: a step function that changes only at ``capacities``.

    ``unit_bytes``: the size of one page or region, which takes one frame. ``capacities``: in
    frames, rising. ``misses``: at each capacity, first touches included. ``touches``: their number.
    """

    unit_bytes: int
    capacities: NDArray[np.int64]
    misses: NDArray[np.int64]
    touches: int

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The capacities in bytes."""
        return self.capacities * self.unit_bytes

    @property
    def ratios(self) -> NDArray[np.float64]:
        """The share of touches that miss, for each capacity."""
        return self.misses / self.touches

    def misses_at(self, capacity: ArrayLike) -> NDArray[np.int64]:
        """Return the misses in ``capacity`` frames: those at the curve's next smaller capacity.

        >>> curve = MissRatioCurve(65536, np.array([2, 4]), np.array([7, 3]), 10)
        >>> curve.misses_at([1, 2, 3, 100]).tolist()
        [10, 7, 7, 3]
        """
        step = np.searchsorted(self.capacities, np.asarray(capacity), side="right")
        return np.append(self.touches, self.misses)[step]


def lru_curve(
    trace: Trace, unit: Unit = "region", progress: Callable[[int], None] = lambda touches: None
) -> MissRatioCurve:
    """Return the exact LRU curve, in one pass (Mattson et al., 1970)."""
    sequence = Sequence(trace, unit)
    reuse = ReuseDistances(sequence.bound)
    for ids in sequence:
        reuse.update(ids)
        progress(len(ids))
    if not reuse.touches:
        raise empty(trace)
    return curve_of(reuse, sequence.unit_bytes)


def curve_of(reuse: ReuseDistances, unit_bytes: int) -> MissRatioCurve:
    """Return the curve of counted distances: in C frames, touches at distances below C hit.

    It ends at the capacity from which on only first touches miss.
    """
    counts = reuse.counts[: reuse.farthest + 1]
    capacities = np.arange(1, len(counts) + 1, dtype=np.int64)
    return MissRatioCurve(unit_bytes, capacities, reuse.touches - np.cumsum(counts), reuse.touches)


def belady_curve(
    trace: Trace,
    capacities: Iterable[int],
    unit: Unit = "region",
    progress: Callable[[int], None] = lambda touches: None,
) -> MissRatioCurve:
    """Return Belady's misses at each of ``capacities``.

    Takes up to 8 bytes of memory per touch that is not a repeat.
    """
    wanted = np.unique(np.fromiter(capacities, np.int64))
    if not len(wanted) or wanted[0] < 1:
        raise TidegateError(
            f"capacities must be one or more, each at least 1, got {wanted.tolist()}"
        )
    sequence = Sequence(trace, unit)
    ids, touches = sequence.collapsed(progress)
    if len(ids) > MOST_TOUCHES:
        raise TidegateError(
            f"trace {trace.name} must have at most {MOST_TOUCHES} touches for Belady, "
            f"got {len(ids)}"
        )
    uses = next_uses(ids, sequence.bound)
    misses = np.array([misses_of(uses, int(c)) for c in wanted], np.int64)
    return MissRatioCurve(sequence.unit_bytes, wanted, misses, touches)
