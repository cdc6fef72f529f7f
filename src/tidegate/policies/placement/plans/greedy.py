"""The longest idle times of the largest pieces are used first."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from tidegate.policies.interface.forecast import Forecast
from tidegate.policies.placement.plans.copy_plan import CopyPlan, Leaves, copy_time
from tidegate.policies.registries import placement


class _Period(NamedTuple):
    """A piece idles from the end of one launch to the begin of another."""

    use: int
    low: int  # the launches during which it can be away
    high: int


@placement("greedy")
class Greedy(CopyPlan):
    """Choose idle periods by the bytes and the time that they take off what exceeds near memory,
    over the time of their copies, until nothing exceeds it (after G10, MICRO'23, without its SSD).

    A piece leaves when its period begins and comes back in the order of need.
    """

    def leaving(self, f: Forecast) -> Leaves:
        over = np.maximum(0, f.live() - self.memory.frames).astype(np.float64)
        periods = self._periods(f)

        def gain(number: int) -> float:
            period = periods[number]
            piece = self.piece[period.use]
            span = slice(period.low, period.high)
            saved = np.minimum(over[span], self.size[piece]) @ f.duration[span]
            return float(saved) / copy_time(f, piece)

        heap = [(-gain(n), n) for n in range(len(periods))]
        heapify(heap)
        leaves: Leaves = {}
        while heap and over.max(initial=0) > 0:
            _, number = heappop(heap)
            now = -gain(number)
            if now == 0:
                continue
            if heap and now > heap[0][0]:
                heappush(heap, (now, number))
                continue
            period = periods[number]
            piece = self.piece[period.use]
            over[period.low : period.high] -= self.size[piece]
            np.maximum(over, 0, out=over)
            leaves.setdefault(self.launch[period.use], []).append(piece)
        return leaves

    def _periods(self, f: Forecast) -> list[_Period]:
        """Return the periods that are longer than their copies."""
        again = np.flatnonzero(f.next < f.never)
        size = f.bytes[f.piece[again]]
        gone = f.start[f.launch[again] + 1] + size / f.outward
        back = f.start[f.next[again]] - size / f.inward
        low = np.searchsorted(f.start, gone)
        high = np.searchsorted(f.start, back, side="right") - 1
        rows = zip(again.tolist(), low.tolist(), high.tolist(), strict=True)
        return [_Period(*row) for row in rows if row[2] > row[1]]
