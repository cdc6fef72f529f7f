"""Play the program of a point on its machine, and read the same quantity off the run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tidegate.experiments import Run, RunSpec
from tidegate.machine import Machine
from tidegate.validate.points import Point, Quantity


def play(point: Point, machine: str | Machine | None = None, cache: bool = True) -> Run:
    """Return the simulated run of a point's program, by default on the point's machine.

    The system is NVIDIA's driver: LRM, tree prefetch, unified memory.
    """
    given: Any = {
        "workload": point.workload,
        "machine": machine or point.source.machine,
        "near": point.near_memory,
        "system": "uvm",
        "prefetch": point.prefetch,
    }
    return RunSpec(**given).run(cache)


def simulated(point: Point, run: Run) -> float | tuple[int, ...]:
    """Return what a run says of the point's quantity."""
    page = run.facts["page_bytes"]
    match point.quantity:
        case Quantity.TIME:
            return _time(run, point.launch)
        case Quantity.BYTES:
            return float(run.summary["bytes_in"])
        case Quantity.FAULTS:
            return float(run.counts["raw_faults"])
        case Quantity.COPIES:
            return float(run.counts["copies_in"])
        case Quantity.MOVES:
            return tuple(pages * page for pages in run.launches["pages_in"])


def _time(run: Run, launch: int) -> float:
    if not launch:
        return run.time
    row: dict[str, Any] = run.launches.row(launch - 1, named=True)
    return float(row["end"] - row["start"])


def play_all(
    points: Iterable[Point], machine: str | Machine | None = None, cache: bool = True
) -> dict[Point, float | tuple[int, ...]]:
    """Return the simulated value of each point; points of one run share it."""
    runs: dict[tuple[str, ...], Run] = {}
    values = {}
    for point in points:
        key = point.source.machine, point.workload, point.near_memory, point.prefetch
        if key not in runs:
            runs[key] = play(point, machine, cache)
        values[point] = simulated(point, runs[key])
    return values
