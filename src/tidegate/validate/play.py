"""Play the program of a point on its machine, and read the same quantity off the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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


def play_programs(
    points: Iterable[Point],
    machine: str | Machine | None = None,
    cache: bool = True,
    progress: Callable[[int], None] = lambda programs: None,
) -> Iterator[tuple[Point, float | tuple[int, ...], Run]]:
    """Yield each point, its simulated value and its run; points of one program share a run."""
    programs: dict[tuple[str, ...], list[Point]] = {}
    for point in points:
        programs.setdefault(program_of(point), []).append(point)
    for alike in programs.values():
        run = play(alike[0], machine, cache)
        progress(1)
        yield from ((point, simulated(point, run), run) for point in alike)


def program_of(point: Point) -> tuple[str, ...]:
    """Return what tells a point's run from others."""
    return point.source.machine, point.workload, point.near_memory, point.prefetch


def play_all(
    points: Iterable[Point], machine: str | Machine | None = None, cache: bool = True
) -> dict[Point, float | tuple[int, ...]]:
    """Return the simulated value of each point."""
    return {point: value for point, value, _ in play_programs(points, machine, cache)}
