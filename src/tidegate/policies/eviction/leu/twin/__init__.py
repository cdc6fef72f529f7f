"""LEU's compiled twin: the same table, cells and sampler on arrays (policy.py, rimm.py, cells.py,
interval_table.py).

    layout      the state, in words
    rings       linked lists of regions
    cells       regions of an access site by the time of their last touch; the lowest of all
    priorities  phases, computed from counts
    table       access sites and their counts
    sampler     observation of regions

This file handles the events.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit_inner, jit_policy
from tidegate.policies.eviction.leu.twin.cells import append, leave, lowest, remove
from tidegate.policies.eviction.leu.twin.layout import (
    ABSENT,
    AFTER,
    ARRIVING,
    PLACE,
    WHEN,
    arrivals_node,
    counted,
    nodes,
    prepare,
    time_of,
)
from tidegate.policies.eviction.leu.twin.sampler import (
    fetch_known,
    look,
    settle_arrivals,
    touched_since,
)
from tidegate.policies.interface.events import EVENT_BITS, EVICTION, FREE, VICTIM


@jit_policy
def _leu(own: int, event: int) -> int:
    if event == VICTIM:
        settle_arrivals(own)
        region = lowest(own)
        while region >= 0:
            fetch_known(own, nodes(own)[region, AFTER])  # likely the next victim
            if not touched_since(own, region):
                return region
            region = lowest(own)
        return nodes(own)[arrivals_node(own), AFTER]
    region = event >> EVENT_BITS
    if event & 255 not in (EVICTION, FREE):
        _fault(own, region)
    elif nodes(own)[region, PLACE] == ARRIVING:
        remove(nodes(own), region)
        nodes(own)[region, PLACE] = ABSENT
    else:
        leave(own, region)
    return 0


@jit_inner
def _fault(own: int, region: int) -> None:
    known = nodes(own)
    if known[region, PLACE] >= 0:
        touched_since(own, region)
        leave(own, region)
    if known[region, PLACE] == ARRIVING:
        remove(known, region)
    else:
        look(own, region)
        known[region, WHEN] = time_of(own)
        known[region, PLACE] = ARRIVING
    append(known, arrivals_node(own), region)


class LEUTwin:
    """The function above, and the way of LEU's state into its words and back."""

    @property
    def address(self) -> int:
        return _leu.address

    def pack(self, policy: Any, regions: int) -> NDArray[np.int64]:
        """Return the twin's words."""
        return prepare(policy, regions, policy.memory.geometry.pages_per_region)

    def unpack(self, policy: Any, words: NDArray[np.int64], regions: int) -> None:
        """Give the policy what it reports."""
        counted(policy, words)
