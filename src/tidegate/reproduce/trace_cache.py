"""A cache of traces, for the many runs of one application in a grid."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from tidegate.experiments.specification import RunSpec
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Launch, Trace
from tidegate.workloads.program import Program, Space, Workload


def cached(spec: Any) -> Any:
    """Return the same run specification with the trace of its workload cached.

    A specification whose workload is not a name is returned as it is.
    """
    workload = getattr(spec, "workload", None)
    return replace(spec, workload=CachedWorkload(workload)) if isinstance(workload, str) else spec


class CachedWorkload(Workload):
    """The workload ``spec``. A process keeps the trace of the one it made last.

    A run has the same key with and without the cache.
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


_cached: dict[tuple[str, Geometry], Trace] = {}  # one at most


def _trace(spec: str, geometry: Geometry) -> Trace:
    if (spec, geometry) not in _cached:
        _cached.clear()
        _release_memory()
        _cached[spec, geometry] = CachedTrace(RunSpec(spec, geometry=geometry).trace())
    return _cached[spec, geometry]


def _release_memory() -> None:
    """Return free memory to the system: glibc keeps it, and the next trace is as large again.

    A run and its policies point at each other and at the trace, so only the collector frees them.
    """
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class CachedTrace(Trace):
    """A trace whose launches are kept when they are first read to the end."""

    def __init__(self, trace: Trace):
        self.name, self.geometry, self.objects = trace.name, trace.geometry, trace.objects
        self.provenance, self.plan = trace.provenance, trace.plan
        self.first_touch = trace.first_touch
        self._trace, self._launches = trace, list[Launch]()

    def launches(self) -> Iterator[Launch]:
        if not self._launches:
            self._launches = [
                replace(launch, segments=tuple(launch.segments))
                for launch in self._trace.launches()
            ]
            if isinstance(self._trace, Program):
                self._trace.workload.release()
        return iter(self._launches)

    def made_by(self) -> tuple[object, ...]:
        return self._trace.made_by()

    def identity(self) -> dict[str, Any]:
        return self._trace.identity()
