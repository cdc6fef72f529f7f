"""How fast are three tiers, and how much memory do they take?

Zipf's law (0.9) over twice what near and middle hold together, as GMT's factor has it; a tenth of the pages is
near. Then the
same with a million near pages, in a process of its own, for its peak of memory.
"""

from __future__ import annotations

import resource
import subprocess
import sys

import numpy as np

from benchmarks.in_memory import InMemory
from benchmarks.row import Row
from benchmarks.timing import best_of
from tidegate import Geometry, blocks_of
from tidegate.machine import load_machine
from tidegate.mechanism.tiers.simulation import Tiered
from tidegate.policies.registries import tiering
from tidegate.workloads.draw import Zipf, generator

TOUCHES, PAGES = 20_000_000, 163_840
PLACEMENTS = ("bam", "tier-order", "tier-reuse")
MILLION = 1_000_000  # near pages
SEGMENT = 1 << 20
PAGE = 64 * 1024
REPETITIONS = 3


def tiers() -> list[Row]:
    trace = _zipf(PAGES, TOUCHES)
    rows = []
    for name in PLACEMENTS:
        timing = best_of(
            REPETITIONS, lambda s: s.run() or s.counts["hits"], lambda name=name: _tiered(trace, PAGES // 10, name)
        )
        target = 20.0 if name == "tier-reuse" else None
        rate = TOUCHES / timing.cpu / 1e6
        rows.append(Row(f"tiers: {name}", rate, "M touches/s", f"{timing.result / TOUCHES:.0%} near", target, True))
    used = subprocess.run([sys.executable, "-m", "benchmarks.tiers"], check=True, capture_output=True, text=True).stdout
    rows.append(
        Row("tiers: a million near pages", float(used), "GB", "10 M pages in all, tier-reuse, peak of the process", 1.0)
    )
    return rows


def _zipf(pages: int, touches: int) -> InMemory:
    numbers = Zipf(pages, 0.9, seed=1).draw(generator(1, 1), touches)
    segments = [blocks_of(16, numbers[first : first + SEGMENT], bytes=PAGE) for first in range(0, touches, SEGMENT)]
    return InMemory(pages, [segments], Geometry(PAGE, PAGE))


def _tiered(trace: InMemory, near: int, placement: str) -> Tiered:
    return Tiered(trace, load_machine("a100-pcie3-ssd"), near, 4 * near, tiering.make(placement))


def _million() -> float:
    """Peak memory in GB of a loop over ten million pages."""
    pages = np.arange(10 * MILLION, dtype=np.int32)
    segments = [blocks_of(16, pages[first : first + SEGMENT], bytes=PAGE) for first in range(0, len(pages), SEGMENT)]
    _tiered(InMemory(len(pages), [segments], Geometry(PAGE, PAGE)), MILLION, "tier-reuse").run()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    print(_million())
