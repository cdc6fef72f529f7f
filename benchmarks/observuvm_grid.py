"""How long ObservUVM's whole grid takes: 14 applications × 9 systems at the paper's sizes, nothing fetched from the store.

    python benchmarks/observuvm_grid.py [scale]        target: 3 minutes on 2 cores, 2 GB per worker

The time is that of the grid with its traces, once everything is compiled. The original takes 24 hours on the real card.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from statistics import median
from typing import NamedTuple

from tidegate import units
from tidegate.experiments import Ask
from tidegate.experiments.reproduce.kept import Kept
from tidegate.experiments.reproduce.observuvm.setup import Setup, grid_of

TARGET_SECONDS, TARGET_BYTES, TARGET_RATE = 180, 2e9, 50e6


class Timed(NamedTuple):
    """One run: how long it took, how much it touched, and how large its worker had become."""

    seconds: float
    touches: int
    worker_bytes: int


def timed(ask: Ask) -> Timed:
    began = time.perf_counter()
    run = ask.answer(cache=False)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Timed(time.perf_counter() - began, run.counts["touches"], most)


def asks_at(scale: float) -> dict[tuple[str, str], Ask]:
    grid = grid_of(Setup(scale=scale))
    kept = {a: Kept(str(ask.workload)) for (a, _), ask in grid.items()}
    return {at: replace(ask, workload=kept[at[0]]) for at, ask in grid.items()}


def measure(scale: float) -> tuple[float, dict[tuple[str, str], Timed]]:
    """The grid on one worker per core. A small grid goes before, so that everything is compiled."""
    for ask in asks_at(1 / 256).values():
        ask.answer(cache=False)
    found: dict[tuple[str, str], Timed] = {}
    began = time.perf_counter()
    with ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(timed, ask): at for at, ask in asks_at(scale).items()}
        for future in as_completed(futures):
            found[futures[future]] = future.result()
    return time.perf_counter() - began, found


def main() -> None:
    scale = units.fraction(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    seconds, found = measure(scale)
    for application in dict.fromkeys(a for a, _ in sorted(found)):
        own = {s: t for (a, s), t in found.items() if a == application}
        slowest = max(own, key=lambda s: own[s].seconds)
        print(f"{application:4} {sum(t.seconds for t in own.values()):7.1f} s for {len(own)} systems, "
              f"{units.show_count(max(t.touches for t in own.values()))} touches each, slowest {slowest} "
              f"{own[slowest].seconds:.1f} s")  # fmt: skip
    rate = median(t.touches / t.seconds for t in found.values())
    most = max(t.worker_bytes for t in found.values())
    print(f"grid: {len(found)} runs in {seconds:.0f} s on {os.cpu_count()} cores (target {TARGET_SECONDS} s); "
          f"largest worker {units.show_size(most)} (target {units.show_size(TARGET_BYTES)}); median run "
          f"{units.show_count(rate)} touches/s with its trace (target {units.show_count(TARGET_RATE)})")  # fmt: skip


if __name__ == "__main__":
    main()
