"""Patterns: data from an eviction policy for a prefetcher of the same run: CPPE's fine-grained
cooperation.

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
    searched: bool = False  # a fault looked for it before


class Patterns(dict[int, Pattern]):
    """The pattern buffer: patterns of evicted regions, by region.

    Its size is not limited; ``longest`` is the most it held.
    """

    longest = 0
    kept = False  # an eviction policy records patterns; else the prefetcher does

    @classmethod
    def of(cls, memory: MemoryView) -> Patterns:
        """Return the buffer that all policies of a run share."""
        found: Any = memory.shared.setdefault("patterns", cls())
        return found  # type: ignore[no-any-return]

    def record(self, region: int, touched: frozenset[int]) -> None:
        """Record which pages of a region were touched before its eviction."""
        self[region] = Pattern(touched)
        self.longest = max(self.longest, len(self))


def sparse_from(given: int, memory: MemoryView) -> int:
    """Return the untouched pages from which a pattern is recorded: as given, or half a chunk's."""
    return given or max(1, memory.geometry.pages_per_region // 2)
