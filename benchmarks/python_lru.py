"""How long do 20 M touches take with an LRU in Python?

A loop over 5,120 regions of which 3,413 fit: every visit of a region is a fault, an eviction and a
question for the victim. Each page is touched twelve times in a visit, so that 20 M touches make
about 150,000 events, as in the measurements that chose the design (where it took 0.16 s, and 0.07 s
with a compiled LRU).
"""

from __future__ import annotations

import numpy as np

from benchmarks.in_memory import InMemory
from benchmarks.row import Row
from benchmarks.timing import best_of
from tidegate import RunSpec
from tidegate.policy import EvictionPolicy
from tidegate.workload import blocks_of

REGIONS, FRAMES, PAGES_PER_REGION = 5120, 3413, 32
TOUCHES, PER_PAGE, BLOCK = 20_000_000, 12, 4  # a block reads four pages, as in the cyclic workload
MOST = 0.4  # seconds
REPETITIONS = 5


class PythonLRU(EvictionPolicy):
    """Evict the region whose last known use is oldest."""

    def on_fault(self, region: int) -> None:
        self.order.move_to_tail(region)

    def on_eviction(self, region: int) -> None:
        self.order.remove(region)

    def victim(self) -> int:
        return self.order.head

    def finished(self) -> None:
        assert set(self.order) == self.resident


def python_lru() -> list[Row]:
    trace = _loop()
    near = FRAMES * trace.geometry.region

    def timed(eviction: type[EvictionPolicy] | str) -> tuple[float, float, int]:
        def prepare():
            policy = eviction if isinstance(eviction, str) else eviction()
            return RunSpec(
                trace,
                near=near,
                eviction=policy,
                prefetch="region",
                compiled=isinstance(eviction, str),
            ).prepare()

        timing = best_of(REPETITIONS, lambda s: s.run() or s.books[0], prepare)
        assert timing.result["touches"] == TOUCHES
        return timing.wall, timing.cpu, int(timing.result["decisions"])

    wall, cpu, decisions = timed(PythonLRU)
    _, compiled, _ = timed("lrm")
    against = (
        f"{decisions:,} victims; {wall:.2f} s by the wall; {compiled:.2f} s with lrm, compiled"
    )
    return [Row("20 M touches of a loop, LRU in Python", cpu, "s", against, MOST)]


def _loop() -> InMemory:
    """Return passes over the array, a launch each, until there are TOUCHES touches."""
    once = np.repeat(np.arange(REGIONS * PAGES_PER_REGION, dtype=np.int32), PER_PAGE)
    segment, launches, left = (
        blocks_of(BLOCK * PER_PAGE, once, bytes=64 * 1024 // PER_PAGE),
        [],
        TOUCHES,
    )
    while left > 0:
        part = (
            segment
            if left >= len(once)
            else blocks_of(BLOCK * PER_PAGE, once[:left], bytes=64 * 1024 // PER_PAGE)
        )
        launches.append([part])
        left -= part.touches
    return InMemory(REGIONS * PAGES_PER_REGION, launches)
