"""Reuse intervals: touches from one touch of a block to the next (forward, Chen et al., MEMSYS'19).

An owner has a distribution: the block itself, or the access site that touched it. The paper defines
P(ri | b) as "the percentage of accesses to b with the reuse interval ri". So a touch without a
successor counts as an access and in no interval: a block used once has no profit, however long it
stays. In an endless sequence every touch has a successor, found cyclically.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidegate.analysis.sequence import Ids, Sequence, Unit, checked, empty
from tidegate.compiled.jit import jit
from tidegate.errors import TidegateError
from tidegate.policies.eviction.leu.phases import Histograms
from tidegate.trace import Trace

NEVER = 0  # the interval of a touch without a successor; others are at least 1


@dataclass(frozen=True, eq=False)
class TouchSequence:
    """Touches of blocks by owners: ``ids`` below ``blocks``, ``owners`` below ``bound``."""

    ids: Ids
    blocks: int
    owners: Ids
    bound: int

    @classmethod
    def from_ids(cls, ids: ArrayLike, references: ArrayLike | None = None) -> TouchSequence:
        """Return a sequence whose touches belong to their access sites (``references``), if they
        are given, else to their blocks.
        """
        array, blocks = checked(ids, capacity=1)
        if references is None:
            return cls(array, blocks, array, blocks)
        owners, bound = checked(references, capacity=1)
        if len(owners) != len(array):
            raise TidegateError(
                f"references must be one per touch, {len(array)}, got {len(owners)}"
            )
        return cls(array, blocks, owners, bound)

    @classmethod
    def of_trace(
        cls,
        trace: Trace,
        unit: Unit = "region",
        progress: Callable[[int], None] = lambda touches: None,
    ) -> TouchSequence:
        """Return a trace's touches of regions or pages, each owned by its access site.

        A run of touches of one id becomes its last touch: the others hit in any memory, and the
        last access site decides.
        """
        ids, references = [], []
        sequence = Sequence(trace, unit)
        segments = (s for launch in trace.launches() for s in launch.segments if s.touches)
        for chunk, segment in zip(sequence, segments, strict=True):
            ends = np.append(chunk[1:] != chunk[:-1], True)
            ids.append(chunk[ends])
            references.append(segment.reference[ends])
            progress(len(chunk))
        if not ids:
            raise empty(trace)
        joined = np.concatenate(ids)
        # runs that continue from one segment to the next
        ends = np.append(joined[1:] != joined[:-1], True)
        owners = np.concatenate(references)[ends].astype(np.int32)
        return cls.from_ids(joined[ends], owners - min(0, int(owners.min())))

    def intervals(self, endless: bool = False) -> NDArray[np.int32]:
        """Return every touch's reuse interval, or NEVER.

        >>> TouchSequence.from_ids([0, 0, 1, 1]).intervals(endless=True).tolist()
        [1, 3, 1, 3]
        """
        found = np.empty(len(self.ids), np.int32)
        _intervals(self.ids, np.full(self.blocks, -1, np.int32), found, endless)
        return found

    def histograms(self, endless: bool = False) -> Histograms:
        """Return the counts of intervals by owner."""
        intervals = self.intervals(endless)
        reused = intervals != NEVER
        keys = self.owners[reused].astype(np.int64) << 32 | intervals[reused]
        distinct, counts = np.unique(keys, return_counts=True)
        first = np.searchsorted(distinct, np.arange(self.bound + 1, dtype=np.int64) << 32)
        upto = np.append(0, np.cumsum(counts))
        before = np.repeat(upto[first[:-1]], np.diff(first))  # counts of earlier owners
        values, upto = (
            (distinct & 0xFFFFFFFF).astype(np.int32),
            (upto[1:] - before).astype(np.int32),
        )
        return Histograms(first, values, upto, np.bincount(self.owners, minlength=self.bound))


@jit
def _intervals(ids: Any, following: Any, found: Any, endless: bool) -> None:
    n = len(ids)
    if endless:
        for i in range(n - 1, -1, -1):
            following[np.uint64(ids[i])] = i + n
    for i in range(n - 1, -1, -1):
        id = np.uint64(ids[i])
        found[i] = following[id] - i if following[id] >= 0 else NEVER
        following[id] = i
