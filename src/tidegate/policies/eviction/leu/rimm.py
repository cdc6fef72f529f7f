"""RIMM: the region with the fewest expected uses, found in a time independent of the number of
regions.

The paper's reuse interval memory manager (Chen et al., MEMSYS'19, section 3.3): the table of access
sites (the paper's references), and the regions of each site in cells by their TESLA.

    site s    ░ ▒▒ ▒ │ ▒▒▒▒ ▒ │ ▒ ▒▒▒▒▒▒▒ │ ▒▒ …    Between two leases the priority rises with
              cells: │ young  │           │ old     TESLA: of each site, only the youngest cell
                     └────────┴ candidates┘         after a lease can be the lowest. There are few
                                                    cells, and fewer leases.

This is exact for the distributions in the table and the TESLAs of cells: the region found has the
lowest priority of all. Of equals, it is the one touched longest ago, also where no further use is
expected.
"""

from __future__ import annotations

import math
from collections.abc import Container

from tidegate.policies.eviction.leu.cells import Cells
from tidegate.policies.eviction.leu.interval_table import IntervalTable
from tidegate.policies.structures.order import first


class RIMM:
    """Regions with access site and time of their last touch, and the table of access sites."""

    def __init__(self, table: int, batch: int, forget: int = 0):
        self.table = IntervalTable(table, batch, forget)
        self._cells: dict[int, Cells] = {}  # by place in the table
        self._where: dict[int, tuple[int, int]] = {}  # place and last touch

    def __len__(self) -> int:
        return len(self._where)

    def __contains__(self, region: object) -> bool:
        return region in self._where

    def enter(self, region: int, reference: int, last: int, now: int) -> None:
        """Add a region that was last touched by this access site at ``last``."""
        self._put(region, self.table.place(reference), last, now)

    def leave(self, region: int) -> None:
        place, last = self._where.pop(region)
        self._cells[place].leave(region, last)

    def saw(self, reference: int, reuses: int, interval: int, now: int) -> None:
        """Record reuses of an access site, as IntervalTable.saw does."""
        if self.table.saw(reference, reuses, interval):
            for place in self.table.take_in():
                self._to_others(place, now)

    def lowest(self, now: int, unless: Container[int] = ()) -> int | None:
        """Return the region with the lowest priority, of those not in ``unless``."""
        best, found = (math.inf, 0, 0), None
        for place, cells in self._cells.items():
            cells.advance(now)
            entry = self.table.at(place)
            higher = 0  # up to this TESLA no region is lower than the last one found
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

    def _to_others(self, place: int, now: int) -> None:
        """Move the regions of a replaced access site to those without an entry."""
        if place in self._cells:
            self._cells[place].advance(now)
            for cell in self._cells.pop(place).by_cell():
                for region in cell:
                    self._put(region, self.table.size, self._where[region][1], now)
