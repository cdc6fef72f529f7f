"""InMemory: a trace whose segments are made before the clock starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tidegate.trace import Launch, Provenance, Segment, Trace, lay_out
from tidegate.trace.geometry import Geometry


class InMemory(Trace):
    """One array of ``pages`` pages, and launches of the given segments."""

    name = "in memory"
    provenance = Provenance.ASSUMED

    def __init__(
        self, pages: int, launches: Sequence[Sequence[Segment]], geometry: Geometry | None = None
    ):
        self.geometry = geometry or Geometry()
        self.objects = lay_out({"array": pages * self.geometry.page}, self.geometry)
        self._launches = launches

    def launches(self) -> Iterator[Launch]:
        for segments in self._launches:
            yield Launch("launch", segments)

    def identity(self) -> dict[str, Any]:
        return {"unrepeatable": "made by a benchmark"}
