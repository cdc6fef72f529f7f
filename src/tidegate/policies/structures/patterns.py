"""Patterns: what an eviction policy tells a prefetcher of the same run. CPPE's fine-grained
cooperation is this and no more.

eviction ── record(region, touched pages) ──▶ Patterns ── match(region, faulted) ──▶ prefetch
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidegate.policies.interface.memory_view import MemoryView


@dataclass
class Pattern:
    """Which pages of a region had been touched when it was evicted."""

    touched: frozenset[int]
    searched: bool = False  # a fault has asked for it before


class Patterns(dict[int, Pattern]):
    """The pattern buffer: patterns of evicted regions, by region.

    It has no size; ``longest`` says how large it grew.
    """

    longest = 0
    kept = False  # an eviction policy fills it in; otherwise whoever reads it must

    @classmethod
    def of(cls, memory: MemoryView) -> Patterns:
        """The one that all policies of a run share."""
        found: Any = memory.shared.setdefault("patterns", cls())
        return found  # type: ignore[no-any-return]

    def record(self, region: int, touched: frozenset[int]) -> None:
        """This region is evicted after these of its pages were touched."""
        self[region] = Pattern(touched)
        self.longest = max(self.longest, len(self))


def sparse_from(given: int, memory: MemoryView) -> int:
    """Untouched pages from which a pattern is worth recording: as given, or half of a chunk's."""
    return given or max(1, memory.geometry.pages_per_region // 2)
