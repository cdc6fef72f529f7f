"""Least recently used, as if every touch were seen."""

from __future__ import annotations

import heapq
from typing import Any

from tidegate.compiled.jit import jit_inner, jit_policy
from tidegate.policies.interface.events import EVENT_BITS, EVICTION, VICTIM
from tidegate.policies.interface.header import OWN, REGIONS, TOUCHES
from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.interface.twin import Twin, last_touch, words_at
from tidegate.policies.interface.visibility import Everything
from tidegate.policies.registries import eviction


@eviction("lru-ideal")
class LRUIdeal(EvictionPolicy):
    """Evict the region whose last touch is oldest, every touch being known: what LRU policies
    approximate.

    Nothing is done per touch. Regions wait in a heap by the last touch known when they were put
    there; when one comes up that has been touched since, it is put back where it belongs.
    """

    sees = Everything()

    def start(self) -> None:
        self._known: dict[int, int] = {}  # resident regions and the last touch we know of
        self._heap: list[tuple[int, int]] = []

    def on_fault(self, region: int) -> None:
        if region not in self._known:
            self._know(region, self.memory.now)

    def on_eviction(self, region: int) -> None:
        del self._known[region]

    def victim(self) -> int:
        while True:
            when, region = self._heap[0]
            if self._known.get(region) != when:  # it left, or was put back already
                heapq.heappop(self._heap)
            elif self.memory.last_touch(region) > when:
                heapq.heappop(self._heap)
                self._know(region, self.memory.last_touch(region))
            else:
                return region

    def finished(self) -> None:
        assert set(self._known) == self.resident

    def _know(self, region: int, when: int) -> None:
        self._known[region] = when
        heapq.heappush(self._heap, (when, region))


# The twin. Its own words: known[regions] (0: not resident, else touch + 1), the heap's size, the
# heap. A heap entry is (touch + 1) · 2²⁴ + region, so that entries compare like the pairs above.
# Every resident region has one live entry and dead ones are thrown away when they come up; a region
# that leaves and returns can leave dead ones behind, so when the heap is full it is made anew from
# the live ones.

_SHIFT = 24


@jit_inner
def _parts(own: int) -> Any:
    h = words_at(own, OWN)
    n = h[REGIONS]
    return h, words_at(own + 8 * OWN, n), words_at(own + 8 * (OWN + n), 4 * n + 2)


@jit_inner
def _push(known: Any, heap: Any, region: int, when: int) -> None:
    known[region] = when + 1
    if heap[0] + 1 == heap.size:
        heap[0] = 0
        for other in range(known.size):
            if known[other] and other != region:
                _sift_up(heap, known[other] << _SHIFT | other)
    _sift_up(heap, (when + 1) << _SHIFT | region)


@jit_inner
def _sift_up(heap: Any, entry: int) -> None:
    heap[0] += 1
    i = heap[0]
    while i > 1 and heap[i // 2] > entry:
        heap[i] = heap[i // 2]
        i //= 2
    heap[i] = entry


@jit_inner
def _pop(heap: Any) -> None:
    entry = heap[heap[0]]
    heap[0] -= 1
    i, n = 1, heap[0]
    while 2 * i <= n:
        child = 2 * i
        if child < n and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= entry:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = entry


@jit_policy
def _lru_ideal(own: int, event: int) -> int:
    h, known, heap = _parts(own)
    if event == VICTIM:
        while heap[0]:
            entry = heap[1]
            region = entry & ((1 << _SHIFT) - 1)
            if known[region] != entry >> _SHIFT:
                _pop(heap)
                continue
            last = last_touch(own, region)
            if last + 1 <= known[region]:
                return region
            _pop(heap)
            _push(known, heap, region, last)
        return -1
    region = event >> EVENT_BITS
    if event & 255 == EVICTION:
        known[region] = 0
    elif not known[region]:
        _push(known, heap, region, words_at(h[TOUCHES], 1)[0])
    return 0


LRUIdeal.compiled = Twin(_lru_ideal, lambda regions: 5 * regions + 2)
