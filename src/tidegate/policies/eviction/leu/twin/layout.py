"""The twin's state, as int64 words after the mechanism's header: scalars, the offsets of the parts,
the parts.

All data of a region are in one record, its node, with the links of its ring: one access to memory
instead of several. Functions take ``own`` and look up the parts they need, which is faster than
passing them all.

[places]: for each entry of the table, and one for the regions whose access site has none.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.addresses import floats_at, grid_at, words_at
from tidegate.compiled.jit import jit_inner
from tidegate.policies.eviction.leu.cells import LEVELS, SPAN
from tidegate.policies.eviction.leu.interval_table import BUCKETS
from tidegate.policies.eviction.leu.phases import ENDLESS, LEASE, LEFT
from tidegate.policies.interface.header import OWN, REGION_TOUCHES, REGIONS, TOUCHES

REFERENCES = 1 << 16
_ROWS = 2 * BUCKETS + 1

TABLE, BATCH, SAMPLE, PENDING, ENTRIES, REPLACED, FORGET = range(7)
_SCALARS = 8
(
    NODES,  # [regions, cells, arrivals; 8] rings, and what is known of a region: see below
    AT,  # [places] the time to which its cells were brought
    MEMBERS,  # [places] how many regions are there
    FILLED,  # [places; levels] bits of cells that may hold regions
    ENTRY,  # [places] the reference
    PLACE_OF,  # [references] its place in the table
    ENTRY_TOUCHES,  # [places]
    COUNTS,  # [places; buckets]
    CHANGED,  # [places] whether counts changed since its phases were computed
    ROWS,  # [places; rows; 4] phases
    ROW,  # [places; 2] the first and last of them
    BEST,  # [places] the lowest priority, as a double
    BEST_TESLA,  # [places] and of which cell
    BEST_CELL,
    BEST_AT,  # [places] when that was found; -1: it has changed since
    WAITING,  # [batch; 3] reuses that are not in the table yet
    MOMENTS,  # [pages per region; 2]
    ROOM,  # for working phases out
) = range(18)
_PARTS = 24
# columns of NODES; a region's place in the table, its last touch, that one's reference, touches,
# and when it faulted
AFTER, BEFORE, PLACE, LAST, REFERENCE, COUNT, WHEN = range(7)
COLUMNS = 8
ABSENT, ARRIVING = -1, -2  # instead of a place in the table
PLENTY = 1 << 40  # rows: the length of such a view is not used


def prepare(policy: Any, regions: int, pages: int) -> NDArray[np.int64]:
    """Return the twin's words at the start of a run."""
    places = policy.table + 1
    nodes = regions + places * LEVELS * SPAN + 1
    sizes = [
        nodes * COLUMNS,
        places,
        places,
        places * LEVELS,
        places,
        REFERENCES,
        places,
        places * BUCKETS,
        places,
        places * _ROWS * 4,
        places * 2,
        places,
        places,
        places,
        places,
        policy.batch * 3,
        pages * 2,
        4 * BUCKETS,
    ]
    offsets = _SCALARS + _PARTS + np.cumsum([0, *sizes])
    own = np.zeros(offsets[-1], np.int64)
    own[[TABLE, BATCH, FORGET]] = policy.table, policy.batch, policy.forget
    own[SAMPLE] = math.ceil(policy.sample * 2**53)
    own[_SCALARS : _SCALARS + len(sizes)] = OWN + offsets[:-1]
    part = [own[a:b] for a, b in pairwise(offsets)]
    part[NODES][AFTER::COLUMNS] = part[NODES][BEFORE::COLUMNS] = np.arange(nodes)
    part[NODES][PLACE::COLUMNS] = ABSENT
    part[PLACE_OF][:] = policy.table
    part[BEST_AT][:] = -1
    rows = part[ROWS].reshape(places, _ROWS, 4)
    rows[:, 0, LEASE], rows[:, 0, LEFT] = ENDLESS, 1  # no use is expected yet
    return own


def counted(policy: Any, own: NDArray[np.int64]) -> None:
    """Set the counts to report after a run."""
    policy.counted = {"references": int(own[ENTRIES]), "references replaced": int(own[REPLACED])}


@jit_inner
def scalars(own: int) -> Any:
    return words_at(own + 8 * OWN, _SCALARS)


@jit_inner
def part(own: int, which: int) -> int:
    """Return the address of a part."""
    return int(own + 8 * words_at(own + 8 * (OWN + _SCALARS), _PARTS)[which])


@jit_inner
def words(own: int, which: int) -> Any:
    return words_at(part(own, which), PLENTY)


@jit_inner
def nodes(own: int) -> Any:
    return grid_at(part(own, NODES), PLENTY, COLUMNS)


@jit_inner
def filled_cells(own: int) -> Any:
    return grid_at(part(own, FILLED), PLENTY, LEVELS)


@jit_inner
def rows_of(own: int, place: int) -> Any:
    return grid_at(part(own, ROWS) + 32 * _ROWS * place, _ROWS, 4)


@jit_inner
def best_of(own: int) -> Any:
    return floats_at(part(own, BEST), PLENTY)


@jit_inner
def time_of(own: int) -> int:
    return int(words_at(words_at(own, OWN)[TOUCHES], 1)[0])


@jit_inner
def touched(own: int, region: int) -> int:
    """Return how often a region was touched."""
    return int(words_at(words_at(own, OWN)[REGION_TOUCHES], PLENTY)[region])


@jit_inner
def place_of(own: int, reference: int) -> int:
    return int(words(own, PLACE_OF)[reference & (REFERENCES - 1)])


@jit_inner
def cell(own: int, place: int, level: int, number: int) -> int:
    """Return the node of a cell."""
    return int(words_at(own, OWN)[REGIONS] + (place * LEVELS + level) * SPAN + number % SPAN)


@jit_inner
def arrivals_node(own: int) -> int:
    """Return the node of the ring of arrivals, the last of all."""
    return int(words_at(own, OWN)[REGIONS] + (scalars(own)[TABLE] + 1) * LEVELS * SPAN)
