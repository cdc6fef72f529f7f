"""How fast are three tiers, and how much memory do they take?

Three traces of 20 M touches over twice what near and middle hold together, as GMT's factor has it:
zipf (0.9), a loop, in which every touch misses, and bursts, in which a page is touched 32 times
running. The peer is a bare CLOCK over near memory (analysis.clock_misses), which neither keeps time
nor places anything, in the same process: on a busy machine the ratio to it says more than the rate.
Then a million near pages, in a process of its own, for its peak of memory.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from numpy.typing import NDArray

from benchmarks.child import peak
from benchmarks.in_memory import InMemory
from benchmarks.row import Row
from benchmarks.timing import best_of
from tidegate import RunSpec
from tidegate.analysis import clock_misses
from tidegate.machine import load_machine
from tidegate.policies.registries import tiering
from tidegate.simulation.tiers.simulation import Tiered
from tidegate.workload import Geometry, blocks_of
from tidegate.workloads.random_pages import Zipf, generator

TOUCHES, PAGES, BURST = 20_000_000, 163_840, 32
NEAR = PAGES // 10
PLACEMENTS = ("bam", "tier-order", "tier-reuse")
MILLION, PASSES = 1_000_000, 4  # near pages, and how often all pages are gone through
SEGMENT = 1 << 20
PAGE = 64 * 1024
REPETITIONS = 3


def tiers() -> list[Row]:
    rows = []
    for kind, pages in _traces().items():
        trace = _trace(pages)
        peer = best_of(REPETITIONS, lambda _, pages=pages: clock_misses(pages, NEAR)).cpu
        for name in PLACEMENTS:
            timing = best_of(
                REPETITIONS,
                lambda s: s.run() or s.counts["hits"],
                lambda name=name, trace=trace: _tiered(trace, NEAR, name),
            )
            target = 20.0 if (name, kind) == ("tier-reuse", "zipf") else None
            told = f"{timing.result / TOUCHES:.0%} near; {timing.cpu / peer:.1f} times a bare CLOCK"
            rows.append(
                Row(
                    f"tiers: {name}, {kind}",
                    TOUCHES / timing.cpu / 1e6,
                    "M touches/s",
                    told,
                    target,
                    True,
                )
            )
    used = subprocess.run(
        [sys.executable, "-m", "benchmarks.tiers"], check=True, capture_output=True, text=True
    ).stdout
    rows.append(
        Row(
            "tiers: a million near pages",
            float(used),
            "GB",
            "a loop over 10 M pages, tier-reuse; peak of the process",
            1.0,
        )
    )
    return rows


def _traces() -> dict[str, NDArray[np.int32]]:
    zipf = Zipf(PAGES, 0.9, seed=1).draw(generator(1, 1), TOUCHES).astype(np.int32)
    loop = np.resize(np.arange(PAGES, dtype=np.int32), TOUCHES)
    return {"zipf": zipf, "loop": loop, "bursts": np.repeat(zipf[: TOUCHES // BURST], BURST)}


def _trace(numbers: NDArray[np.int32]) -> InMemory:
    starts = range(0, len(numbers), SEGMENT)
    segments = [blocks_of(16, numbers[first : first + SEGMENT], bytes=PAGE) for first in starts]
    return InMemory(int(numbers.max()) + 1, [segments], Geometry(PAGE, PAGE))


def _tiered(trace: InMemory, near: int, placement: str) -> Tiered:
    return Tiered(trace, load_machine("a100-pcie3-ssd"), near, 4 * near, tiering.make(placement))


def _million() -> float:
    """Peak memory in GB of some passes over ten million pages, streamed as any workload is."""
    loop = f"cyclic(bytes={10 * MILLION * PAGE}, passes={PASSES})"
    RunSpec(loop, tiering="tier-reuse", near=MILLION * PAGE).run(cache=False)
    return peak() / 1e9


if __name__ == "__main__":
    print(_million())
