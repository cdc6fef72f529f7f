"""Pace: how long the touches of a launch take when all it touches is near.

Without a duration a touch takes its bytes at the slot's share of the bandwidth, or longer where the
arithmetic is the limit. With one, every block takes the same time, which its touches share by their
bytes: S slots work through B blocks in ceil(B / S) waves, so the launch takes its duration however
its blocks are cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit
from tidegate.machine.machine import Machine
from tidegate.trace.trace import Launch, Segment

_UNITS = 1 << 30  # a block's time is divided into so many
_LEAST = 1e-9  # bytes of a touch of none, so that such touches share a block evenly


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
    used = sum(int(s.bytes.sum(dtype=np.int64)) for s in segments)
    duration = near_time(launch, used, machine)
    blocks = sum(int(np.count_nonzero(s.starts[1:] > s.starts[:-1])) for s in segments)
    waves = max(1, -(-blocks // slots))
    return Pace(duration / waves / _UNITS, 0.0, 0.0, segments, True)


def near_time(launch: Launch, used: int, machine: Machine) -> float:
    """Return how long a launch that uses so many bytes takes if all of them are near, in ns.

    Without a duration it is an estimate: the touches of all slots may not be evenly spread.
    """
    near = machine.near
    if launch.duration:
        return launch.duration
    if launch.flops:
        return max(launch.flops / machine.rate(launch.dtype), used / near.bandwidth)
    per_byte = max(1 / near.bandwidth, launch.intensity / near.flops)
    return near.launch_overhead + used * per_byte


def shares_of(segment: Segment) -> NDArray[np.int32]:
    """Return each touch's share of its block's time, by its bytes; a block has ``_UNITS`` in all.

    >>> one = Segment(*map(np.array, ([0, 2, 3], [0, 1, 2], [0, 0, 0], [10, 30, 7], [0, 0, 0])))
    >>> shares_of(one).tolist() == [_UNITS // 4, _UNITS * 3 // 4, _UNITS]
    True
    """
    return np.asarray(_shares(segment.starts, segment.bytes))


@jit
def _shares(starts: Any, sizes: Any) -> Any:
    share = np.empty(sizes.size, np.int32)
    before = 0.0  # bytes of all blocks so far; summed touch by touch
    for block in range(starts.size - 1):
        first, end = starts[block], starts[block + 1]
        whole = before
        for i in range(first, end):
            whole += sizes[i] + _LEAST
        upto, given = before, np.int64(0)
        for i in range(first, end):
            upto += sizes[i] + _LEAST
            until = np.int64(np.rint((upto - before) / (whole - before) * _UNITS))
            share[i] = until - given
            given = until
        before = whole
    return share


def with_last(segments: Iterable[Segment]) -> Iterator[tuple[Segment, bool]]:
    """Yield each segment, and whether it is the launch's last."""
    waiting: Segment | None = None
    for segment in segments:
        if waiting is not None:
            yield waiting, False
        waiting = segment
    if waiting is not None:
        yield waiting, True
