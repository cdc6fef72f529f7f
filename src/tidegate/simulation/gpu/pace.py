"""Pace: how long the touches of a launch take when all it touches is near.

Without a duration a touch takes its bytes at the slot's share of the bandwidth, or longer where the
arithmetic is the limit. With one, every block takes the same time, which its touches share by their
bytes: S slots work through B blocks in ceil(B / S) waves, so the launch takes its duration however
its blocks are cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.machine.machine import Machine
from tidegate.trace.trace import Launch, Segment

_UNITS = 1 << 30  # a block's time is divided into so many


class Pace(NamedTuple):
    """A touch takes ``cost * per_cost`` ns, and at least ``latency``."""

    per_cost: float
    latency: float
    overhead: float  # before the launch begins
    segments: Iterable[Segment]
    by_time: bool  # costs are shares of a block's time; otherwise bytes

    def cost(self, segment: Segment) -> NDArray[np.int32]:
        """Return the cost of each touch."""
        return shares_of(segment) if self.by_time else segment.bytes


def pace_of(launch: Launch, machine: Machine, slots: int) -> Pace:
    """Return the pace of a launch. One with a duration is held in memory as a whole."""
    near = machine.near
    if not launch.duration and not launch.flops:
        per_byte = slots * max(1 / near.bandwidth, launch.intensity / near.flops)
        return Pace(per_byte, near.latency, near.launch_overhead, launch.segments, False)
    segments = list(launch.segments)
    duration = launch.duration
    if launch.flops:
        used = sum(int(s.bytes.sum(dtype=np.int64)) for s in segments)
        duration = max(launch.flops / machine.rate(launch.dtype), used / near.bandwidth)
    blocks = sum(int(np.count_nonzero(np.diff(s.starts))) for s in segments)
    waves = max(1, -(-blocks // slots))
    return Pace(duration / waves / _UNITS, 0.0, 0.0, segments, True)


def shares_of(segment: Segment) -> NDArray[np.int32]:
    """Return each touch's share of its block's time, by its bytes; a block has ``_UNITS`` in all.

    >>> one = Segment(*map(np.array, ([0, 2, 3], [0, 1, 2], [0, 0, 0], [10, 30, 7], [0, 0, 0])))
    >>> shares_of(one).tolist() == [_UNITS // 4, _UNITS * 3 // 4, _UNITS]
    True
    """
    weight = segment.bytes + 1e-9  # so that touches of no bytes share a block evenly
    first = segment.starts[:-1]
    block = np.repeat(np.arange(segment.blocks), np.diff(segment.starts))
    upto = np.cumsum(weight)
    before = np.append(0.0, upto)[first]
    whole = np.append(0.0, upto)[segment.starts[1:]] - before
    until = np.rint((upto - before[block]) / whole[block] * _UNITS).astype(np.int64)
    share = np.diff(until, prepend=0)
    filled = first[first < segment.starts[1:]]
    share[filled] = until[filled]
    return share.astype(np.int32)


def with_last(segments: Iterable[Segment]) -> Iterator[tuple[Segment, bool]]:
    """Yield each segment, and whether it is the launch's last."""
    waiting: Segment | None = None
    for segment in segments:
        if waiting is not None:
            yield waiting, False
        waiting = segment
    if waiting is not None:
        yield waiting, True
