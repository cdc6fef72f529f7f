"""Tournament's compiled twin: contestants are called through the table of its parts (see
eviction/tournament.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit_inner, jit_policy
from tidegate.policies.interface.events import (
    EVENT_BITS,
    EVICTION,
    FAULT,
    NOTIFICATION,
    OBSERVE,
    VICTIM,
)
from tidegate.policies.interface.header import OWN
from tidegate.policies.interface.twin import (
    Twin,
    column,
    fractions,
    own_words,
    part_count,
    relay_to,
    scalars,
    words_at,
)

# Scalars, then rows of one word per contestant, then columns of one word per region. Contestants go
# by their numbers.
PATIENCE, MARGIN, AFRESH, OBSERVABLE, BLAMES, TURN, WATCH, ACTIVE_N, RETIRED_N, NAMED, NAMER = (
    range(11)
)
# MARGIN is a fraction; NAMED is the latest victim until it leaves, or -1, and NAMER who named it
_SCALARS = 11
ACTIVE, BLAME, WATCHES, RETIRED = range(4)
_ROWS = 4
# who had a region evicted that is not back yet; who asked for an observed one; 0 or one higher
_CAUSE, _WATCHED = 0, 1


@jit_inner
def _row(own: int, which: int) -> Any:
    count = part_count(own)
    return words_at(own + 8 * (OWN + _SCALARS + which * count), count)


@jit_inner
def _column(own: int, which: int) -> Any:
    return column(own, _SCALARS + _ROWS * part_count(own), which)


@jit_inner
def _tell_all(own: int, kind: int, region: int) -> None:
    for contestant in range(part_count(own)):
        relay_to(own, contestant, kind | region << EVENT_BITS)


@jit_inner
def _victim(own: int) -> int:
    w = scalars(own, _SCALARS)
    w[TURN] = (w[TURN] + 1) % w[ACTIVE_N]
    chosen = _row(own, ACTIVE)[w[TURN]]
    region = relay_to(own, chosen, VICTIM)
    w[NAMED], w[NAMER] = region, chosen
    return region


@jit_inner
def _observe(own: int) -> int:
    w, active, watches = scalars(own, _SCALARS), _row(own, ACTIVE), _row(own, WATCHES)
    count = w[ACTIVE_N]
    share = -(-w[OBSERVABLE] // count)
    for _ in range(count):
        w[WATCH] = (w[WATCH] + 1) % count
        contestant = active[w[WATCH]]
        if watches[contestant] < share:
            region = relay_to(own, contestant, OBSERVE)
            if region >= 0:
                _unwatch(own, region)
                _column(own, _WATCHED)[region] = contestant + 1
                watches[contestant] += 1
                return region
    return -1


@jit_inner
def _unwatch(own: int, region: int) -> None:
    watched = _column(own, _WATCHED)
    if watched[region]:
        _row(own, WATCHES)[watched[region] - 1] -= 1
        watched[region] = 0


@jit_inner
def _leaves(own: int, region: int) -> None:
    """If this is the latest victim, note who named it."""
    w = scalars(own, _SCALARS)
    if w[NAMED] == region:
        _column(own, _CAUSE)[region] = w[NAMER] + 1
        w[NAMED] = -1


@jit_inner
def _blame(own: int, region: int) -> None:
    w, cause = scalars(own, _SCALARS), _column(own, _CAUSE)
    if not cause[region]:
        return
    culprit = cause[region] - 1
    cause[region] = 0
    _row(own, BLAME)[culprit] += 1
    w[BLAMES] += 1
    if w[BLAMES] > w[PATIENCE] and w[ACTIVE_N] > 1:
        _judge(own, culprit)


@jit_inner
def _judge(own: int, culprit: int) -> None:
    """Retire the worst; those who stay keep their order."""
    w, active, blame, retired = (
        scalars(own, _SCALARS),
        _row(own, ACTIVE),
        _row(own, BLAME),
        _row(own, RETIRED),
    )
    all_suspect = w[BLAMES] == w[PATIENCE] + 1
    most = fractions(own, _SCALARS)[MARGIN] / w[ACTIVE_N] * w[BLAMES]
    stay = 0
    for i in range(w[ACTIVE_N]):
        contestant = active[i]
        if blame[contestant] > most and (all_suspect or contestant == culprit):
            retired[w[RETIRED_N]] = contestant
            w[RETIRED_N] += 1
        else:
            active[stay] = contestant
            stay += 1
    if stay < w[ACTIVE_N]:
        w[ACTIVE_N] = stay
        w[TURN] = w[WATCH] = 0
        if w[AFRESH]:
            blame[:] = 0
            w[BLAMES] = 0


@jit_policy
def _tournament(own: int, event: int) -> int:
    if event == VICTIM:
        return _victim(own)
    if event == OBSERVE:
        return _observe(own)
    region, kind = event >> EVENT_BITS, event & 255
    if kind in (EVICTION, NOTIFICATION):
        _unwatch(own, region)
        if kind == EVICTION:
            _leaves(own, region)
    else:  # what is prefetched arrives like what has faulted
        kind = FAULT
        _blame(own, region)
    _tell_all(own, kind, region)
    return 0


def _prepare(policy: Any, regions: int, pages: int) -> NDArray[np.int64]:
    count = len(policy.contestants)
    first = [
        policy.patience,
        policy.margin,
        policy.afresh,
        policy.memory.observable,
        0,
        0,
        0,
        count,
        0,
        -1,
        0,
    ]
    return own_words(regions, [*first, *range(count), *[0] * (_ROWS - 1) * count], columns=2)


def _results(policy: Any, words: NDArray[np.int64]) -> None:
    rows = words[_SCALARS : _SCALARS + _ROWS * len(policy.contestants)].reshape(_ROWS, -1)
    active, retired = rows[ACTIVE, : words[ACTIVE_N]], rows[RETIRED, : words[RETIRED_N]]
    policy.judged([policy.contestants[i] for i in active], [policy.contestants[i] for i in retired])


TOURNAMENT_TWIN = Twin(_tournament, prepare=_prepare, results=_results)
