"""How many touches a second, when nothing is missing?

656 slots, everything near after the first launch. Loop: the time inside the compiled loop
(``play``), of the launches after the first. End to end: the whole run, with checking the segments
and handing them over. The limit is a plain compiled loop over the same columns that does the least
a simulator could: look the page up, mark it, add its bytes.
"""

from __future__ import annotations

import time
from typing import Any
from unittest.mock import patch

import numba
import numpy as np

from benchmarks.in_memory import InMemory
from benchmarks.row import Row
from benchmarks.timing import best_of
from tidegate import RunSpec
from tidegate.simulation.gpu import simulation
from tidegate.workload import blocks_of

REGIONS, PAGES_PER_REGION = 5120, 32
SEGMENT = 1 << 20  # touches; what workloads stream
LAUNCHES, SEGMENTS = 6, 4  # the first launch warms up
MANY = 100  # M touches per second
REPETITIONS = 4


def hit_path() -> list[Row]:
    return _rows("whole pages", used=64 * 1024, block=4) + _rows(
        "8 KiB each", used=8 * 1024, block=32
    )


def _rows(what: str, used: int, block: int) -> list[Row]:
    pages = np.resize(np.arange(REGIONS * PAGES_PER_REGION, dtype=np.int32), SEGMENT)
    segment = blocks_of(block, pages, bytes=used)
    trace = InMemory(REGIONS * PAGES_PER_REGION, [[segment] * SEGMENTS] * LAUNCHES)
    spec = RunSpec(trace, near=trace.footprint, prefetch="region")
    near = np.ones(trace.pages, np.uint8)
    loop = min(_seconds_in_loop(spec.prepare()) for _ in range(REPETITIONS))
    whole = best_of(REPETITIONS, lambda s: s.run(), spec.prepare).cpu
    least = best_of(1 + REPETITIONS, lambda _: _least(segment.page, segment.bytes, near)).cpu
    in_loop = SEGMENT * SEGMENTS * (LAUNCHES - 1) / loop / 1e6
    in_all = SEGMENT * SEGMENTS * LAUNCHES / whole / 1e6
    limit = SEGMENT / least / 1e6
    share = (
        f"{in_loop / limit:.0%} of a plain compiled loop over the same columns ({limit:.0f} M/s)"
    )
    fed = f"{in_all / in_loop:.0%} of the loop alone; 1 Mi touches a segment"
    return [
        Row(f"hit path, {what}: loop", in_loop, "M touches/s", share, MANY, at_least=True),
        Row(f"hit path, {what}: end to end", in_all, "M touches/s", fed, MANY, at_least=True),
    ]


def _seconds_in_loop(prepared: simulation.Simulation) -> float:
    """Return the processor time inside ``play``, without the first launch."""
    spent: list[float] = []

    def timed(*arguments: Any) -> int:
        start = time.process_time()
        code = play(*arguments)
        if prepared.launches:
            spent.append(time.process_time() - start)
        return code

    play = simulation.play
    with patch.object(simulation, "play", timed):
        prepared.run()
    assert prepared.books["faults"][0] <= REGIONS * PAGES_PER_REGION, (
        "only the first launch may fault"
    )
    return sum(spent)


@numba.njit
def _least(page: Any, size: Any, state: Any) -> int:
    total = 0
    for i in range(page.size):
        at = np.uint32(page[i])
        if state[at] & 1:
            state[at] |= 2
            total += size[i]
    return total
