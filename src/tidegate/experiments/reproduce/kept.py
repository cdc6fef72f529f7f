"""Kept: a workload whose trace is made once per process, for the many runs that one application has in a grid."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from tidegate.experiments.ask import Ask
from tidegate.mechanism.geometry import Geometry
from tidegate.trace.trace import Launch, Trace
from tidegate.workloads.program import Space, Workload


class Kept(Workload):
    """Stands for the workload ``spec``; a process keeps the trace of the one it met last. Runs are named as without it."""

    def __init__(self, spec: str):
        super().__init__()
        self.spec = spec

    def trace(self, geometry: Geometry | None = None) -> Trace:  # type: ignore[override]
        return _trace(self.spec, geometry or Geometry())

    def sizes(self) -> dict[str, int]:
        return {o.name: o.bytes for o in self.trace().objects}

    def launches(self, space: Space) -> Iterator[Launch]:
        return self.trace(space.geometry).launches()


@lru_cache(maxsize=1)
def _trace(spec: str, geometry: Geometry) -> Trace:
    return KeptTrace(Ask(spec, geometry=geometry).trace())


class KeptTrace(Trace):
    """The same trace; what it streams is kept when it is first read to the end."""

    def __init__(self, trace: Trace):
        self.name, self.geometry, self.objects = trace.name, trace.geometry, trace.objects
        self.provenance = trace.provenance
        self._trace, self._launches = trace, list[Launch]()

    def launches(self) -> Iterator[Launch]:
        if not self._launches:
            self._launches = [Launch(k.name, tuple(k.segments), k.width, k.intensity) for k in self._trace.launches()]
        return iter(self._launches)

    def identity(self) -> dict[str, Any]:
        return self._trace.identity()
