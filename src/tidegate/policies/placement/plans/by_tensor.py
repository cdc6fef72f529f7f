"""Plans by tensor: which ones are copied to the host between their uses, and which stay."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.options import Option
from tidegate.policies.interface.forecast import Forecast
from tidegate.policies.placement.plans.copy_plan import CopyPlan, Leaves, copy_time
from tidegate.policies.registries import placement
from tidegate.units import size


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


@placement("offload")
class Offload(CopyPlan):
    """Copy out all data that were made near and idle for longer than their copies take:
    activations that wait for their backward pass (vDNN, MICRO'16; PyTorch's save_on_cpu, without
    waiting for the copies). Data stay if all that is needed before their next use has found room.
    """

    idle = Option(2.0, "times the copies out and back that data must idle", least=1)

    def leaving(self, f: Forecast) -> Leaves:
        gap = f.start[np.minimum(f.next, f.never - 1)] - f.start[f.launch + 1]
        copies = f.bytes[f.piece] * (1 / f.outward + 1 / f.inward)
        chosen = (f.next < f.never) & ~f.host[f.piece] & (gap > self.idle * copies)
        leaves: Leaves = {}
        for use in np.flatnonzero(chosen).tolist():
            leaves.setdefault(self.launch[use], []).append(self.piece[use])
        return leaves


@placement("pin-and-stream")
class PinAndStream(CopyPlan):
    """Keep as many pieces with host data as fit, and stream the others through what is left, as
    inference engines do with weights (FlexGen, DeepSpeed-Inference, llama.cpp).

    Streamed pieces are spread evenly over the program and leave after each use, so that the link
    is never idle. What else the program needs at its peak has room of its own.
    """

    buffer = Option(256 << 20, "room for pieces that pass through", parse=size, least=0)

    def leaving(self, f: Forecast) -> Leaves:
        streamed = self._streamed(f)
        leaves: Leaves = {}
        for use in np.flatnonzero(streamed[f.piece]).tolist():
            leaves.setdefault(self.launch[use], []).append(self.piece[use])
        return leaves

    def _streamed(self, f: Forecast) -> NDArray[np.bool_]:
        """Return which pieces are streamed: an even share, in the order of their first uses."""
        found = np.zeros(len(f.first), np.bool_)
        order = list(dict.fromkeys(f.piece[f.host[f.piece]].tolist()))
        weights = sum(self.size[piece] for piece in order)
        others = int(f.live().max(initial=0)) - weights
        buffer = max(self.buffer // f.region_bytes, *(2 * self.size[p] for p in order), 0)
        room = self.memory.frames - max(0, others)
        if weights <= room:
            return found
        share = 1 - max(0, room - buffer) / weights
        due = streamed = 0.0
        for piece in order:
            due += self.size[piece] * share
            if streamed + self.size[piece] <= due + self.size[piece] / 2:
                found[piece] = True
                streamed += self.size[piece]
        return found


@placement("look-ahead")
class LookAhead(CopyPlan):
    """Bring the next missing pieces while kernels run, and make room for them early: the pieces
    used furthest ahead leave, as Belady would choose with pieces for pages.

    Room is made early only while less than ``ahead`` waits for the inward stream: the later a
    choice is made, the better it is. Nor does anything leave if data that die before the need make
    enough room. The policy is ours; DeepSpeed's and vDNN's prefetchers do it for one kind of data.
    """

    ahead = Option(256 << 20, "bytes for which room is made before they are needed", parse=size)

    def make_room(self, launch: int, needed: int, piece: int) -> bool:
        if needed > launch:
            dead = int(self.forecast.dead[needed] - self.forecast.dead[launch])
            enough = self.waiting * self.forecast.region_bytes >= self.ahead
            if enough or self.lacking(piece) <= dead:
                return self.evict_unused(piece)
        return self.evict_furthest(needed, piece)
