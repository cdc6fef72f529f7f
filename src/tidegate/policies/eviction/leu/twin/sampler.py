"""The sampler: reuses of a region from the last touches of its pages, as in
policies/eviction/leu/policy.py.
"""

from __future__ import annotations

import numpy as np

from tidegate.compiled.addresses import grid_at, words_at
from tidegate.compiled.intrinsics import fetch_ahead
from tidegate.compiled.jit import jit_inner
from tidegate.policies.eviction.leu.twin.cells import enter, leave, remove
from tidegate.policies.eviction.leu.twin.layout import (
    AFTER,
    COLUMNS,
    COUNT,
    LAST,
    MOMENTS,
    PLENTY,
    REFERENCE,
    SAMPLE,
    WHEN,
    arrivals_node,
    nodes,
    part,
    scalars,
    touched,
)
from tidegate.policies.eviction.leu.twin.table import saw
from tidegate.policies.interface.header import (
    LATEST,
    OWN,
    PAGES_PER_REGION,
    REGION_BYTES,
    REGION_TOUCHES,
    SERVED,
    TURN,
)
from tidegate.policies.interface.page_flags import reference_of, touch_of


@jit_inner
def _is_served(own: int, region: int) -> bool:
    """Return whether this region was served in the driver's current turn."""
    h = words_at(own, OWN)
    return words_at(h[SERVED] + REGION_BYTES * region, 1)[0] == words_at(h[TURN], 1)[0]


@jit_inner
def _latest_of(own: int, region: int) -> int:
    """Return the region's last touch and its access site (page_flags.py)."""
    h = words_at(own, OWN)
    pages = h[PAGES_PER_REGION]
    return words_at(h[LATEST] + 8 * region * pages, pages).max()


@jit_inner
def _is_sampled(own: int, region: int) -> bool:
    drawn = np.uint64(region) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(11)
    return bool(np.int64(drawn) < scalars(own)[SAMPLE])


@jit_inner
def _note_moments(own: int, region: int, after: int) -> int:
    """Write times and access sites of the last touches of the region's pages, sorted by time.
    Return their number.
    """
    h = words_at(own, OWN)
    pages = h[PAGES_PER_REGION]
    latest = words_at(h[LATEST], PLENTY)
    moments = grid_at(part(own, MOMENTS), PLENTY, 2)
    n = 0
    for page in range(region * pages, (region + 1) * pages):
        when = touch_of(latest[page])
        if when > after:
            i = n
            while i > 0 and moments[i - 1, 0] > when:
                moments[i, 0], moments[i, 1] = moments[i - 1, 0], moments[i - 1, 1]
                i -= 1
            moments[i, 0], moments[i, 1] = when, reference_of(latest[page])
            n += 1
    return n


@jit_inner
def _saw_reuses(own: int, when: int, reference: int, first: int, n: int, touches: int) -> None:
    """Record the reuses of ``touches`` since ``when``, by the moments from ``first`` to ``n``."""
    moments = grid_at(part(own, MOMENTS), PLENTY, 2)
    interval = moments[first, 0] - when
    if n - first == 1:
        saw(own, reference, touches, interval // touches)
        return
    hidden = touches - (n - first)
    apart = (moments[n - 1, 0] - moments[first, 0]) // (n - first - 1)
    if hidden:
        saw(own, reference, hidden, apart)
        interval = max(interval - hidden * apart, min(interval, apart))
    saw(own, reference, 1, interval)
    for i in range(first, n - 1):
        saw(own, moments[i, 1], 1, moments[i + 1, 0] - moments[i, 0])


@jit_inner
def look(own: int, region: int) -> None:
    """Note the last touch and the touches of a region."""
    known, latest = nodes(own), _latest_of(own, region)
    known[region, LAST], known[region, REFERENCE] = touch_of(latest), reference_of(latest)
    known[region, COUNT] = touched(own, region)


@jit_inner
def touched_since(own: int, region: int) -> bool:
    """Return whether a region was touched since the last look, and update it if so."""
    known = nodes(own)
    touches = touched(own, region) - known[region, COUNT]
    if touches == 0:
        return False
    if _is_sampled(own, region):
        last = known[region, LAST]
        n = _note_moments(own, region, last)
        if n == 0:  # prefetched at ``last``, and touched by the very next touch
            moments = grid_at(part(own, MOMENTS), PLENTY, 2)
            moments[0, 0], moments[0, 1] = last + 1, reference_of(_latest_of(own, region))
            n = 1
        _saw_reuses(own, last, known[region, REFERENCE], 0, n, touches)
    leave(own, region)
    look(own, region)
    enter(own, region)
    return True


@jit_inner
def _arrived(own: int, region: int, touches: int) -> None:
    known, moments = nodes(own), grid_at(part(own, MOMENTS), PLENTY, 2)
    n, when = _note_moments(own, region, known[region, LAST]), known[region, WHEN]
    if known[region, COUNT]:
        saw(own, known[region, REFERENCE], 1, when - known[region, LAST])
    else:
        saw(own, moments[0, 1], 0, 0)
    if touches > 1 and n > 1:
        _saw_reuses(own, moments[0, 0], moments[0, 1], 1, n, touches - 1)
    elif touches > 1:
        _saw_reuses(own, when, moments[0, 1], 0, n, touches - 1)


@jit_inner
def fetch_known(own: int, region: int) -> None:
    """Fetch the data of a region that is likely to be looked at next."""
    h = words_at(own, OWN)
    fetch_ahead(nodes(own), region * COLUMNS)
    fetch_ahead(words_at(h[REGION_TOUCHES], PLENTY), region)
    fetch_ahead(words_at(h[LATEST], PLENTY), region * h[PAGES_PER_REGION])


@jit_inner
def settle_arrivals(own: int) -> None:
    """Enter regions that faulted in earlier turns: they have been touched by now."""
    known, arrivals = nodes(own), arrivals_node(own)
    while known[arrivals, AFTER] != arrivals and not _is_served(own, known[arrivals, AFTER]):
        region = known[arrivals, AFTER]
        remove(known, region)
        touches = touched(own, region) - known[region, COUNT]
        if touches and _is_sampled(own, region):
            _arrived(own, region, touches)
        look(own, region)
        if touches == 0:
            known[region, LAST] = known[region, WHEN]
        enter(own, region)
