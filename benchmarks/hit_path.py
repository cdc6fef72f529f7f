"""How many touches a second, when nothing is missing?

656 slots, everything near after the first launch. Loop: the time inside the compiled loop (``play``), of the launches
after the first. End to end: the whole run, with checking the segments and handing them over. The limit is a plain
compiled loop over the same columns that does the least a simulator could: look the page up, mark it, add its bytes.
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
from tidegate import Ask, blocks_of
from tidegate.mechanism import simulation

REGIONS, PAGES_PER_REGION = 5120, 32
SEGMENT = 1 << 20  # touches; what workloads stream
LAUNCHES, SEGMENTS = 6, 4  # the first launch warms up
MANY = 100e6  # touches per second
REPETITIONS = 4


def hit_path() -> list[Row]:
    rows = []
    for what, used, block in (("whole pages", 64 * 1024, 4), ("8 KiB each", 8 * 1024, 32)):
        pages = np.resize(np.arange(REGIONS * PAGES_PER_REGION, dtype=np.int32), SEGMENT)
        segment = blocks_of(block, pages, bytes=used)
        trace = InMemory(REGIONS * PAGES_PER_REGION, [[segment] * SEGMENTS] * LAUNCHES)
        ask = Ask(trace, near=trace.footprint, prefetch="region")
        loop = min(_seconds_in_loop(ask.prepare()) for _ in range(REPETITIONS))
        whole = best_of(REPETITIONS, lambda s: s.run(), ask.prepare)
        limit = best_of(REPETITIONS, lambda state: _least(segment.page, segment.bytes, state), lambda: _all_near(trace.pages))
        in_loop = SEGMENT * SEGMENTS * (LAUNCHES - 1) / loop
        in_all = SEGMENT * SEGMENTS * LAUNCHES / whole.cpu
        at_most = SEGMENT / limit.cpu
        share = f"{in_loop / at_most:.0%} of a plain compiled loop over the same columns ({at_most / 1e6:.0f} M/s)"
        rows.append(Row(f"hit path, {what}: loop", in_loop / 1e6, "M touches/s", share, MANY / 1e6, at_least=True))
        fed = f"{in_all / in_loop:.0%} of the loop alone; 1 Mi touches a segment"
        rows.append(Row(f"hit path, {what}: end to end", in_all / 1e6, "M touches/s", fed, MANY / 1e6, at_least=True))
    return rows


def _seconds_in_loop(prepared: simulation.Simulation) -> float:
    """Processor time inside ``play``, without the first launch."""
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
    assert prepared.books["faults"][0] <= REGIONS * PAGES_PER_REGION, "only the first launch may fault"
    return sum(spent)


def _all_near(pages: int) -> Any:
    return np.ones(pages, np.uint8)


@numba.njit
def _least(page: Any, size: Any, state: Any) -> int:
    total = 0
    for i in range(page.size):
        at = np.uint32(page[i])
        if state[at] & 1:
            state[at] |= 2
            total += size[i]
    return total
