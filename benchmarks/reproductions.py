"""How long do whole reproductions take, without the store? They take minutes: run them by name.

The grids of ObservUVM's Figures 9 to 13 and of CPPE, at the papers' sizes, on one worker per core.
Traces are made once: the grid's time counts them, a run's rate does not. Compilation is
not counted: a small grid is run before. Rates are per second of processor time, so that other
programs on the machine change them little. The original of ObservUVM's takes 24 hours on a real
card.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any, NamedTuple

from benchmarks.child import peak
from benchmarks.row import Row
from tidegate.experiments import RunSpec
from tidegate.experiments.sweeps.batches import Task, Work
from tidegate.experiments.sweeps.execution import run_all
from tidegate.papers.cppe import grid as cppe
from tidegate.papers.observuvm.paper import grid_of
from tidegate.papers.observuvm.setup import GRID, Setup


class Timed(NamedTuple):
    """One run: processor time to prepare and to run, touches, and the size of its worker."""

    readying: float  # the trace, where the worker had another one before, and loading compiled code
    playing: float
    touches: int
    worker_bytes: int


def observuvm_grid() -> list[Row]:
    """14 applications × 9 systems."""
    whole, small = (
        {at: run for at, run in grid_of(Setup(scale=scale)).items() if at[2] == GRID}
        for scale in (1.0, 1 / 256)
    )
    seconds, found = _measure(small, whole)
    work = sum(t.readying + t.playing for t in found)
    rate = median(t.touches / t.playing for t in found) / 1e6
    most = max(t.worker_bytes for t in found) / 1e9
    return [
        Row(
            "ObservUVM's grid", seconds, "s", f"{len(found)} runs; the original takes 24 hours", 180
        ),
        Row(
            "ObservUVM's grid: processor time of its runs",
            work,
            "s",
            "with their traces; the target for two cores",
            360,
        ),
        Row("ObservUVM's grid: largest worker", most, "GB", "with the trace it keeps", 2),
        Row("ObservUVM's grid: median run", rate, "M touches/s", "its trace made before", 50, True),
    ]


def cppe_grid() -> list[Row]:
    """23 applications × 9 systems × 2 levels; the target is for 8 systems."""
    whole = cppe.grid_of(cppe.Setup())
    small = {at: run for at, run in whole.items() if at[2] == "50%" and at[1] in ("sl+lru", "cppe")}
    seconds, found = _measure(small, whole)
    return [Row("CPPE's grid", seconds, "s", f"{len(found)} runs, a ninth system among them", 90)]


def _measure(
    small: Mapping[Any, RunSpec], whole: Mapping[Any, RunSpec]
) -> tuple[float, list[Timed]]:
    run_all(list(small.values()), _Timing(), stop_at_failure=True)
    began = time.perf_counter()
    found = run_all(list(whole.values()), _Timing(), stop_at_failure=True)
    return time.perf_counter() - began, found


class _Timing(Work):
    def run(self, task: Task) -> Timed:
        return _timed(task.spec)


def _timed(run: RunSpec) -> Timed:
    began = time.process_time()
    simulation = run.prepare()
    for _ in simulation.trace.launches():
        pass
    ready = time.process_time()
    simulation.run()
    return Timed(
        ready - began, time.process_time() - ready, int(simulation.books["touches"][0]), peak()
    )


SLOW: tuple[Callable[[], list[Row]], ...] = (observuvm_grid, cppe_grid)
