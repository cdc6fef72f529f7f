"""Streams: where loads go from one far region to the next, those behind are read early."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tidegate.live.transfer.store import REGIONS_AHEAD, RegionReadAhead

SKIPPED = 4  # near regions between two far ones of a stream, as for the prefetcher ``stream``


class Streams:
    """Follows the loads of an arena, up or down, and asks for early reads.

    ``present``: pages in near memory, by region. ``read(region, like)`` starts to read a region, if
    it is far and kept in the same file as the region ``like``.
    """

    def __init__(
        self, reads: RegionReadAhead, present: Mapping[int, int], read: Callable[[int, int], None]
    ):
        self._reads, self._present, self._read = reads, present, read
        self._latest = -9  # the region that was loaded last; first none, and no neighbour of one

    def note_loaded(self, region: int) -> None:
        """Note that most of this region is loaded; read early what comes next in a stream."""
        latest, self._latest = self._latest, region
        step = 1 if region > latest else -1
        between = range(latest + step, region, step)
        if 0 < abs(region - latest) <= 1 + SKIPPED and all(map(self._present.get, between)):
            following = list(self._far_regions(region, step))
            self._reads.expect(following)
            for far in following:
                self._read(far, region)

    def _far_regions(self, region: int, step: int) -> Iterator[int]:
        """Return the next far regions of a stream, as many as are read early at a time."""
        found = near = 0
        while found < REGIONS_AHEAD and near <= SKIPPED:
            region += step
            if self._present.get(region):
                near += 1
            else:
                found, near = found + 1, 0
                yield region
