"""RIMM: who promises the fewest uses, found in a time that does not grow with the number of
regions.

The paper's reuse interval memory manager (Chen et al., MEMSYS'19, section 3.3): the table of
references, and the regions of each reference in cells by their TESLA.

    reference r    ░ ▒▒ ▒ │ ▒▒▒▒ ▒ │ ▒ ▒▒▒▒▒▒▒▒▒ │ ▒▒ …       Between two leases the priority rises with TESLA: of each
                   cells: │ young  │             │ old        reference only the youngest cell behind a lease can
                          └────────┴─ candidates ┘            be the lowest. There are few cells, and fewer leases.

That is exact for the distributions in the table and TESLAs known to a cell: the region answered has
the lowest priority of all. Of equal ones it is the one touched longest ago; where no use is
expected any more, that is everyone.
"""

from __future__ import annotations

import math
from collections.abc import Container

from tidegate.policies.eviction.leu.cells import Cells
from tidegate.policies.eviction.leu.interval_table import IntervalTable
from tidegate.policies.structures.order import first


class RIMM:
    """Regions with the reference and time of their last touch, and what is known of references."""

    def __init__(self, table: int, batch: int):
        self.table = IntervalTable(table, batch)
        self._cells: dict[int, Cells] = {}  # by place in the table
        self._where: dict[int, tuple[int, int]] = {}  # place and last touch

    def __len__(self) -> int:
        return len(self._where)

    def __contains__(self, region: object) -> bool:
        return region in self._where

    def enter(self, region: int, reference: int, last: int, now: int) -> None:
        """A region that was touched last by this reference, at this time."""
        self._put(region, self.table.place(reference), last, now)

    def leave(self, region: int) -> None:
        place, last = self._where.pop(region)
        self._cells[place].leave(region, last)

    def saw(self, reference: int, reuses: int, interval: int, now: int) -> None:
        """So many touches of this reference were followed by another after this interval; 0: by
        none so far.
        """
        if self.table.saw(reference, reuses, interval):
            for place in self.table.take_in():
                self._make_nameless(place, now)

    def lowest(self, now: int, unless: Container[int] = ()) -> int | None:
        """The region with the lowest priority, of those not in ``unless``."""
        best, found = (math.inf, 0, 0), None
        for place, cells in self._cells.items():
            cells.advance(now)
            entry = self.table.at(place)
            higher = 0  # up to this TESLA nobody is lower than the last one found
            for tesla, regions in cells:
                if tesla < higher or (region := first(regions, unless)) is None:
                    continue
                priority, higher = entry.priority(tesla)
                if (rank := (priority, -tesla, place)) < best:
                    best, found = rank, region
        return found

    def _put(self, region: int, place: int, last: int, now: int) -> None:
        cells = self._cells.setdefault(place, Cells())
        cells.advance(now)
        cells.enter(region, last)
        self._where[region] = place, last

    def _make_nameless(self, place: int, now: int) -> None:
        """This place belongs to another reference now; the regions of the old one go to those
        without an entry.
        """
        if place in self._cells:
            self._cells[place].advance(now)
            for cell in self._cells.pop(place).by_cell():
                for region in cell:
                    self._put(region, self.table.size, self._where[region][1], now)
