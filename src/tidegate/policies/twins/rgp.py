"""RGP's compiled twin: streams per object, and the object of every region looked up (see
prefetch/rgp.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit_inner, jit_policy
from tidegate.policies.interface.events import (
    ASK_OBSERVE,
    ASK_PREFETCH,
    EVENT_BITS,
    EVICTION,
    FAULT,
    NOTIFICATION,
    PREFETCH,
)
from tidegate.policies.interface.header import OWN, PAGES_PER_REGION, REGIONS
from tidegate.policies.interface.twin import (
    Twin,
    ask,
    column,
    grid_at,
    is_resident,
    own_words,
    scalars,
    words_at,
)

AHEAD, STREAK, OBJECTS = range(3)
_SCALARS = 3
# columns: the region's object; has it a trigger page; asked for, not evicted since
_OBJECT, _TRIGGER, _ASKED = range(3)
_COLUMNS = 3
# of each object: its end, where it faulted last, how long in a row, what comes next
_END, _LAST, _RUN, _NEXT = range(4)
_FIELDS = 4


@jit_inner
def _stream(own: int, region: int) -> Any:
    """The fields of a region's object."""
    w, n = scalars(own, _SCALARS), words_at(own, OWN)[REGIONS]
    objects = grid_at(own + 8 * (OWN + _SCALARS + _COLUMNS * n), w[OBJECTS], _FIELDS)
    return objects[column(own, _SCALARS, _OBJECT)[region]]


@jit_inner
def _go_on(own: int, stream: Any) -> None:
    """Prefetch the object's next region."""
    region, pages = stream[_NEXT], words_at(own, OWN)[PAGES_PER_REGION]
    if region >= stream[_END]:
        return
    stream[_NEXT] = region + 1
    if not is_resident(own, region):
        column(own, _SCALARS, _ASKED)[region] = 1
        ask(own, ASK_PREFETCH, region * pages, pages)


@jit_inner
def _faulted(own: int, region: int) -> None:
    w, stream = scalars(own, _SCALARS), _stream(own, region)
    step = region - stream[_LAST]
    stream[_LAST] = region
    if step == 0:
        return
    stream[_RUN] = stream[_RUN] + 1 if step == 1 else 0
    if stream[_RUN] >= w[STREAK]:
        if not region < stream[_NEXT] <= region + w[AHEAD]:
            stream[_NEXT] = region + 1
        for _ in range(min(w[AHEAD], stream[_END] - stream[_NEXT])):
            _go_on(own, stream)


@jit_policy
def _rgp(own: int, event: int) -> int:
    region, kind = event >> EVENT_BITS, event & 255
    trigger, asked = column(own, _SCALARS, _TRIGGER), column(own, _SCALARS, _ASKED)
    if kind == FAULT:
        _faulted(own, region)
    elif kind == PREFETCH:
        if asked[region]:
            trigger[region] = 1
            ask(own, ASK_OBSERVE, region)
    elif kind == NOTIFICATION:
        if trigger[region]:
            trigger[region] = 0
            _go_on(own, _stream(own, region))
    elif kind == EVICTION:
        trigger[region] = asked[region] = 0
    return 0


def _prepare(policy: Any, regions: int, pages: int) -> NDArray[np.int64]:
    firsts, ends = policy.bounds()
    words = own_words(
        regions, [policy.ahead, policy.streak, len(firsts)], _COLUMNS, _FIELDS * len(firsts)
    )
    objects = words[_SCALARS + _COLUMNS * regions :].reshape(len(firsts), _FIELDS)
    objects[:, _END], objects[:, _LAST] = ends, -2
    words[_SCALARS : _SCALARS + regions] = (
        np.searchsorted(firsts, np.arange(regions), side="right") - 1
    )
    return words


RGP_TWIN = Twin(_rgp, prepare=_prepare)
