"""Timing: the best of a few repetitions, by the clock on the wall and by the processor's.

The best, because everything that disturbs a repetition makes it slower. Other programs on the
machine show in wall time and less in processor time, so figures are made from the latter where all
the work is in this process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Timing:
    """Seconds, and what the best repetition returned."""

    wall: float
    cpu: float
    result: Any


def best_of(
    repetitions: int, work: Callable[[Any], Any], prepare: Callable[[], Any] = lambda: None
) -> Timing:
    """Time ``work(prepare())``, of which only ``work`` counts; wall and processor time are the best
    of each.
    """
    walls, cpus, results = [], [], []
    for _ in range(repetitions):
        prepared = prepare()
        wall, cpu = time.perf_counter(), time.process_time()
        results.append(work(prepared))
        cpus.append(time.process_time() - cpu)
        walls.append(time.perf_counter() - wall)
    return Timing(min(walls), min(cpus), results[cpus.index(min(cpus))])
