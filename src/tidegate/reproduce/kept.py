"""Kept: a workload whose trace is made once per process, for the many runs that one application has
in a grid.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from tidegate.experiments.grid import run_grid
from tidegate.experiments.runs import Run
from tidegate.experiments.specification import RunSpec
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Launch, Trace
from tidegate.workloads.program import Program, Space, Workload

K = TypeVar("K")


class Kept(Workload):
    """Stands for the workload ``spec``; a process keeps the trace of the one it met last.

    Runs are named as without it.
    """

    def __init__(self, spec: str):
        super().__init__()
        self.spec = spec

    def trace(self, geometry: Geometry | None = None) -> Trace:  # type: ignore[override]
        return _trace(self.spec, geometry or Geometry())

    def sizes(self) -> dict[str, int]:
        return {o.name: o.bytes for o in self.trace().objects}

    def launches(self, space: Space) -> Iterator[Launch]:
        return self.trace(space.geometry).launches()


_held: dict[tuple[str, Geometry], Trace] = {}  # one at most


def _trace(spec: str, geometry: Geometry) -> Trace:
    if (spec, geometry) not in _held:
        _held.clear()
        _give_back()
        _held[spec, geometry] = KeptTrace(RunSpec(spec, geometry=geometry).trace())
    return _held[spec, geometry]


def _give_back() -> None:
    """Give memory that is free back to the system: glibc keeps it, and the next trace is as large
    again.

    A run and its policies point at each other and at the trace, so that nobody but the collector
    frees them.
    """
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def run_kept(
    asks: Mapping[K, RunSpec], workers: int | None, cache: bool, progress: Callable[[int], None]
) -> dict[K, Run]:
    """Run asks for workloads by name, each workload's together, so that a worker makes its trace
    once.
    """
    order = {
        spec: i for i, spec in enumerate(dict.fromkeys(str(ask.workload) for ask in asks.values()))
    }
    kept = {
        at: replace(ask, workload=Kept(ask.workload)) if isinstance(ask.workload, str) else ask
        for at, ask in sorted(asks.items(), key=lambda item: order[str(item[1].workload)])
    }
    runs = run_grid(kept.values(), workers=workers, cache=cache, progress=lambda ask: progress(1))
    return dict(zip(kept, runs, strict=True))


class KeptTrace(Trace):
    """The same trace; what it streams is kept when it is first read to the end."""

    def __init__(self, trace: Trace):
        self.name, self.geometry, self.objects = trace.name, trace.geometry, trace.objects
        self.provenance, self.plan = trace.provenance, trace.plan
        self._trace, self._launches = trace, list[Launch]()

    def launches(self) -> Iterator[Launch]:
        if not self._launches:
            self._launches = [
                Launch(k.name, tuple(k.segments), k.width, k.intensity)
                for k in self._trace.launches()
            ]
            if isinstance(self._trace, Program):
                self._trace.workload.release()
        return iter(self._launches)

    def identity(self) -> dict[str, Any]:
        return self._trace.identity()
