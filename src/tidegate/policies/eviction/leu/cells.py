"""Cells: the regions of one access site by the time of their last touch, without comparisons.

A cell holds the regions whose last touches fall into one interval of time. Intervals get longer
with age: one touch each for the youngest, twice as long from level to level, sixteen to a level. So
TESLA is known to an eighth.

    level 2  │              │              │  level 1  │      │      │  level 0  │ │ │ │ │ │   now
             ◀── older                                                          younger ──▶

As time passes, an interval that is sixteen intervals back becomes half of one of the next level,
and its regions are appended there all at once. The cell of a region depends on its last touch and
on ``at`` alone, so that no record of it is kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.policies.structures.order import Order

LEVELS = 32
SPAN = 16  # intervals per level


def cell_of(last: int, now: int) -> tuple[int, int]:
    """Return level and number of the cell of a region touched last at ``last``.

    >>> cell_of(100, now=115), cell_of(100, now=116), cell_of(0, now=1000)
    ((0, 100), (1, 50), (6, 0))
    """
    level = max(0, (now - last).bit_length() - 4)
    if (now >> level) - (last >> level) >= SPAN:
        level += 1
    return level, last >> level


def least_tesla(level: int, number: int, now: int) -> int:
    """Return the least time since the last touches of a cell's regions."""
    youngest = min(now, ((number + 1) << level) - 1)
    if level:  # younger ones are one level below
        youngest = min(youngest, ((now >> (level - 1)) - SPAN + 1 << (level - 1)) - 1)
    return now - youngest


class Cells:
    """Regions by the time of their last touch, as of the time ``at``."""

    def __init__(self) -> None:
        self.at = 0
        self._levels: list[dict[int, Order]] = [{} for _ in range(LEVELS)]

    def enter(self, region: int, last: int) -> None:
        """Add a region to the cell of its last touch."""
        level, number = cell_of(last, self.at)
        self._levels[level].setdefault(number, Order()).move_to_tail(region)

    def leave(self, region: int, last: int) -> None:
        level, number = cell_of(last, self.at)
        self._levels[level][number].remove(region)
        if not self._levels[level][number]:
            del self._levels[level][number]

    def advance(self, now: int) -> None:
        """Set the time: move old cells into those of the next level, the oldest first."""
        for level, cells in enumerate(self._levels):
            if now >> level == self.at >> level:
                break  # nothing moves on the levels above, either
            for number in sorted(n for n in cells if (now >> level) - n >= SPAN):
                into = self._levels[level + 1].setdefault(number >> 1, Order())
                into.update(cells.pop(number))
        self.at = now

    def __iter__(self) -> Iterator[tuple[int, Order]]:
        """Yield the least time since the last touches of each cell, and the cell, the youngest
        first.
        """
        for level, cells in enumerate(self._levels):
            for number in sorted(cells, reverse=True):
                yield least_tesla(level, number, self.at), cells[number]

    def by_cell(self) -> Iterator[Order]:
        """Yield the cells level by level, the oldest of each first: the order of merging."""
        for cells in self._levels:
            for number in sorted(cells):
                yield cells[number]
