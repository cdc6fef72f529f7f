"""What is memory worth? Time over near memory, and the knee of that curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.advice.candidates import Candidate
from tidegate.advice.simulate import Outcome, Trial
from tidegate.machine.machine import Machine

POINTS = 4  # sizes between half of near memory and the peak, beside near memory itself
LITTLE = 0.05  # a gain below this share of the time is nothing


@dataclass(frozen=True)
class Point:
    """The best time at one size of near memory."""

    near: int
    time: float
    name: str  # of the candidate


@dataclass(frozen=True)
class Worth:
    """Times by size, the smallest size first."""

    points: tuple[Point, ...]

    @property
    def knee(self) -> Point | None:
        """The smallest size beyond which more memory gains little; None without points."""
        if not self.points:
            return None
        least = min(p.time for p in self.points)
        return next(p for p in self.points if p.time <= least * (1 + LITTLE))


def sizes(near: int, peak: int, region: int) -> list[int]:
    """Return sizes to try, in whole regions: around near memory, and up to what holds everything.

    >>> [size >> 20 for size in sizes(64 << 20, 128 << 20, 2 << 20)]
    [32, 50, 80, 128]
    """
    most = -(-peak // region) * region
    least = max(region * 8, min(near, most) // 2)
    spread = np.geomspace(least, max(least, most), POINTS)
    whole = {int(size) // region * region for size in spread[:-1]} | {most}
    return sorted(whole - {near // region * region})


def trials(
    candidates: Sequence[Candidate], machine: Machine, near: int, peak: int, region: int
) -> list[Trial]:
    """Return the trials for the curve: each candidate at each size."""
    return [Trial(c, machine, s) for s in sizes(near, peak, region) for c in candidates]


def find_worth(outcomes: Sequence[Outcome]) -> Worth:
    """Return the best time at each size."""
    best: dict[int, Outcome] = {}
    for outcome in outcomes:
        near = outcome.trial.near
        if outcome.run is not None and (near not in best or outcome.time < best[near].time):
            best[near] = outcome
    points = (Point(near, best[near].time, best[near].name) for near in sorted(best))
    return Worth(tuple(points))
