"""FDP's compiled twin (see prefetch/fdp.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit_inner, jit_policy
from tidegate.policies.interface.events import (
    ASK_OBSERVE,
    ASK_THRESHOLD,
    EVENT_BITS,
    EVICTION,
    NOTIFICATION,
    PREFETCH,
)
from tidegate.policies.interface.twin import (
    Twin,
    ask,
    column,
    fractions,
    has_faulted,
    is_observed,
    own_words,
    scalars,
)

# SHARE is a fraction
EVERY, ENOUGH, SHARE, BOLD, SHY, THRESHOLD, PREFETCHES, VERDICTS, USEFUL = range(9)
_SCALARS = 9
_WATCHING = 0  # column


@jit_inner
def _prefetched(own: int, region: int) -> None:
    w = scalars(own, _SCALARS)
    if not has_faulted(own, region):
        return
    w[PREFETCHES] += 1
    if w[PREFETCHES] % w[EVERY] == 0 and not is_observed(own, region):
        column(own, _SCALARS, _WATCHING)[region] = 1
        ask(own, ASK_OBSERVE, region)


@jit_inner
def _verdict(own: int, region: int, useful: int) -> None:
    w = scalars(own, _SCALARS)
    column(own, _SCALARS, _WATCHING)[region] = 0
    w[USEFUL] += useful
    w[VERDICTS] += 1
    if w[VERDICTS] > w[ENOUGH]:
        w[THRESHOLD] = (
            w[BOLD] if w[USEFUL] / w[VERDICTS] > fractions(own, _SCALARS)[SHARE] else w[SHY]
        )
        ask(own, ASK_THRESHOLD, w[THRESHOLD])


@jit_policy
def _fdp(own: int, event: int) -> int:
    region, kind = event >> EVENT_BITS, event & 255
    if kind == PREFETCH:
        _prefetched(own, region)
    elif kind in (NOTIFICATION, EVICTION) and column(own, _SCALARS, _WATCHING)[region]:
        _verdict(own, region, 1 if kind == NOTIFICATION else 0)
    return 0


def _prepare(policy: Any, regions: int, pages: int) -> NDArray[np.int64]:
    first = [
        policy.every,
        policy.enough,
        policy.share,
        policy.bold,
        policy.shy,
        policy.threshold,
        0,
        0,
        0,
    ]
    return own_words(regions, first, columns=1)


def _results(policy: Any, words: NDArray[np.int64]) -> None:
    policy.threshold, policy.verdicts, policy.useful = (
        int(words[i]) for i in (THRESHOLD, VERDICTS, USEFUL)
    )


FDP_TWIN = Twin(_fdp, prepare=_prepare, results=_results)
