"""Cyclic protection's compiled twin: two lists, and which of the regions are in which (see
eviction/cp.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit_inner, jit_policy
from tidegate.policies.interface.events import EVENT_BITS, EVICTION, NOTIFICATION, OBSERVE, VICTIM
from tidegate.policies.interface.header import OWN, REGIONS
from tidegate.policies.interface.twin import (
    Twin,
    after,
    append,
    column,
    contains,
    first_unobserved,
    fractions,
    head,
    is_served,
    links,
    list_words,
    own_words,
    prepend,
    remove,
    scalars,
    tail,
    words_at,
)

LEAST, SIZE, STEP, FRAMES, SHARE, OPEN_N = range(6)  # SHARE is a fraction
_SCALARS = 6
_MINE, _IS_OPEN = 0, 1  # columns: observed at this policy's word; in the unprotected area


@jit_inner
def _areas(own: int) -> Any:
    """The lists, and where the protected and the unprotected one end."""
    n = words_at(own, OWN)[REGIONS]
    return links(own, _SCALARS + 2 * n, 2), n, n + 1


@jit_inner
def _settle(own: int) -> None:
    """Put the split where it belongs: it moves over the regions beside it."""
    w, is_open = scalars(own, _SCALARS), column(own, _SCALARS, _IS_OPEN)
    order, protected, unprotected = _areas(own)
    while w[OPEN_N] > w[SIZE]:
        region = head(order, unprotected)
        remove(order, region)
        append(order, region, protected)
        is_open[region] = 0
        w[OPEN_N] -= 1
    while w[OPEN_N] < w[SIZE]:
        region = tail(order, protected)
        if region < 0:
            break
        remove(order, region)
        prepend(order, region, unprotected)
        is_open[region] = 1
        w[OPEN_N] += 1


@jit_inner
def _victim(own: int) -> int:
    order, protected, unprotected = _areas(own)
    region = head(order, unprotected)
    while region >= 0 and is_served(own, region):
        region = after(order, region, unprotected)
    if region < 0:
        region = tail(order, protected)
    return region if region >= 0 else head(order, unprotected)


@jit_inner
def _observe(own: int) -> int:
    order, _, unprotected = _areas(own)
    near_split = max(1, int(fractions(own, _SCALARS)[SHARE] * scalars(own, _SCALARS)[OPEN_N]))
    region = first_unobserved(own, order, near_split, unprotected)
    if region >= 0:
        column(own, _SCALARS, _MINE)[region] = 1
    return region


@jit_policy
def _cp(own: int, event: int) -> int:
    if event == VICTIM:
        return _victim(own)
    if event == OBSERVE:
        return _observe(own)
    region, kind = event >> EVENT_BITS, event & 255
    w, mine, is_open = (
        scalars(own, _SCALARS),
        column(own, _SCALARS, _MINE),
        column(own, _SCALARS, _IS_OPEN),
    )
    order, _, unprotected = _areas(own)
    if kind == EVICTION:
        remove(order, region)
        w[OPEN_N] -= is_open[region]
        if mine[region]:
            w[SIZE] = max(w[LEAST], w[SIZE] - w[STEP])
        mine[region] = is_open[region] = 0
    elif kind == NOTIFICATION:
        if not mine[region]:
            return 0
        mine[region] = 0
        w[SIZE] = min(w[FRAMES], w[SIZE] + w[STEP])
    elif not contains(order, region):
        append(order, region, unprotected)
        is_open[region] = 1
        w[OPEN_N] += 1
    _settle(own)
    return 0


def _prepare(policy: Any, regions: int, pages: int) -> NDArray[np.int64]:
    first = [*policy.bounds(), policy.step, policy.memory.frames, policy.observe_share, 0]
    return own_words(regions, first, columns=2, more=list_words(regions, 2))


CP_TWIN = Twin(_cp, prepare=_prepare)
