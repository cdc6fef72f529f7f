"""The bound."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from tidegate.compiled.addresses import words_at
from tidegate.compiled.jit import jit_inner, jit_policy
from tidegate.policies.interface.tier_events import EVENT_BITS, PLACE, SPILL, TOUCH, VICTIM
from tidegate.policies.interface.tier_header import (
    MIDDLE_PAGES,
    MIDDLE_USED,
    NEAR_PAGES,
    NOW,
    OWN,
    PAGES,
    USES,
)
from tidegate.policies.interface.tier_policy import ASKED, FAR, MIDDLE, TierPolicy, TierTwin
from tidegate.policies.interface.visibility import Everything
from tidegate.policies.registries import tiering

_ROOM = 4  # entries a heap has room for, times the pages of its tier: most of them are of the past


@jit_policy
def _belady(own: int, event: int) -> int:
    h = words_at(own, OWN)
    kind, page = event & 255, event >> EVENT_BITS
    now = words_at(h[NOW], 1)[0]
    near = _heap(own, 0, h[NEAR_PAGES])
    middle = _heap(own, 1 + _ROOM * h[NEAR_PAGES] + _ROOM, h[MIDDLE_PAGES])
    if kind == TOUCH:
        _push(near, words_at(h[USES], h[PAGES])[page] << 32 | page, now)
    elif kind == VICTIM:
        return near[1] & 0xFFFFFFFF
    elif kind == SPILL:
        return _pop(middle) & 0xFFFFFFFF
    elif kind == PLACE:
        entry = _pop(near)
        if words_at(h[MIDDLE_USED], 1)[0] == h[MIDDLE_PAGES] and (
            middle[0] == 0 or entry > middle[1]
        ):
            return FAR
        _push(middle, entry, now)
        return MIDDLE
    return 0


@jit_inner
def _heap(own: int, at: int, pages: int) -> Any:
    """A heap, the greatest first: how many entries, then the entries.

    An entry is when, and which page.
    """
    return words_at(own + 8 * (OWN + at), 1 + _ROOM * pages + _ROOM)


@jit_inner
def _push(heap: Any, entry: int, now: int) -> None:
    if heap[0] == len(heap) - 1:
        _forget(heap, now)
    heap[0] += 1
    at = heap[0]
    while at > 1 and heap[at // 2] < entry:
        heap[at] = heap[at // 2]
        at //= 2
    heap[at] = entry


@jit_inner
def _pop(heap: Any) -> int:
    found, last = heap[1], heap[heap[0]]
    heap[0] -= 1
    _sink(heap, 1, last)
    return found


@jit_inner
def _sink(heap: Any, at: int, entry: int) -> None:
    while 2 * at <= heap[0]:
        below = 2 * at
        if below < heap[0] and heap[below + 1] > heap[below]:
            below += 1
        if heap[below] <= entry:
            break
        heap[at] = heap[below]
        at = below
    heap[at] = entry


@jit_inner
def _forget(heap: Any, now: int) -> None:
    """Leave out what is past: a page was touched then, and has another entry or none."""
    kept = 0
    for at in range(1, heap[0] + 1):
        if heap[at] >> 32 > now:
            kept += 1
            heap[kept] = heap[at]
    heap[0] = kept
    for at in range(kept // 2, 0, -1):
        _sink(heap, at, heap[at])


@tiering("tier-belady")
class TierBelady(TierPolicy):
    """Near memory loses the page used furthest in the future; so does the middle, the newcomer
    among its pages.

    Belady's choice over three tiers. The near tier has the misses of Belady in its capacity, both
    tiers together those of Belady in both: no placement reads less from the SSD. Writes are not
    part of it, so that with dirty pages it is a bound on reads, not on time. It costs 4 bytes per
    touch of the trace.
    """

    sees = Everything(future=True)
    compiled = TierTwin(
        _belady,
        lambda policy, pages, near, middle: np.zeros(
            2 * (1 + _ROOM) + _ROOM * (near + middle), np.int64
        ),
    )

    @property
    def makes_room(self) -> int:
        return ASKED

    def start(self) -> None:
        # the furthest first; entries whose time has passed sink to the end
        self._near: list[tuple[int, int]] = []
        self._middle: list[tuple[int, int]] = []

    def on_touch(self, page: int) -> None:
        heapq.heappush(self._near, (-self.memory.next_use(page), -page))

    def victim(self) -> int:
        return -self._near[0][1]

    def place(self, page: int) -> int:
        entry = heapq.heappop(self._near)
        if self.memory.middle_used == self.memory.middle_pages and (
            not self._middle or entry < self._middle[0]
        ):
            return FAR
        heapq.heappush(self._middle, entry)
        return MIDDLE

    def spill(self) -> int:
        return -heapq.heappop(self._middle)[1]
