"""LFU's compiled twin: one list per bin, and the known uses of every region (see eviction/lfu.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit_inner, jit_policy
from tidegate.policies.interface.events import EVENT_BITS, EVICTION, NOTIFICATION, OBSERVE, VICTIM
from tidegate.policies.interface.header import OWN, REGIONS
from tidegate.policies.interface.twin import (
    Twin,
    append,
    column,
    contains,
    first_unobserved,
    head,
    links,
    list_words,
    own_words,
    remove,
    scalars,
    words_at,
)

BINS, REMEMBER, FAULT_COUNTS, LOWEST = range(4)
_SCALARS = 4
_USES = 0  # column: known uses, one higher than they are; 0 of a region that nothing is known of


@jit_inner
def _bins(own: int) -> Any:
    n = words_at(own, OWN)[REGIONS]
    return links(own, _SCALARS + n, scalars(own, _SCALARS)[BINS])


@jit_inner
def _use(own: int, region: int, more: int) -> None:
    """Count this many uses more, and put the region at the tail of its bin."""
    w, uses, bins = scalars(own, _SCALARS), column(own, _SCALARS, _USES), _bins(own)
    remove(bins, region)
    uses[region] += more
    place = min(uses[region] - 1, w[BINS] - 1)
    append(bins, region, uses.size + place)
    w[LOWEST] = min(w[LOWEST], place)


@jit_inner
def _first_bin(own: int) -> int:
    """Where the lowest bin ends that holds somebody."""
    w, bins, n = scalars(own, _SCALARS), _bins(own), words_at(own, OWN)[REGIONS]
    while w[LOWEST] < w[BINS] - 1 and head(bins, n + w[LOWEST]) < 0:
        w[LOWEST] += 1
    return n + w[LOWEST]


@jit_policy
def _lfu(own: int, event: int) -> int:
    w, uses, bins = scalars(own, _SCALARS), column(own, _SCALARS, _USES), _bins(own)
    if event == VICTIM:
        return head(bins, _first_bin(own))
    if event == OBSERVE:
        return first_unobserved(own, bins, uses.size, _first_bin(own))
    region, kind = event >> EVENT_BITS, event & 255
    if kind == EVICTION:
        remove(bins, region)
        if not w[REMEMBER]:
            uses[region] = 0
    elif kind == NOTIFICATION:
        _use(own, region, 1)
    elif not contains(bins, region):  # it has just got its frame
        _use(own, region, w[FAULT_COUNTS] if uses[region] else 1)
    elif w[FAULT_COUNTS]:
        _use(own, region, 1)
    return 0


def _prepare(policy: Any, regions: int, pages: int) -> NDArray[np.int64]:
    first = [policy.bins, policy.remember, policy.fault_counts, 0]
    return own_words(regions, first, columns=1, more=list_words(regions, policy.bins))


LFU_TWIN = Twin(_lfu, prepare=_prepare)
