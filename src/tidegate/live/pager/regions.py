"""Regions in the pager: their page sets, which pages are sampled, and which are remote.

A set of a region's pages is the bits of an integer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np

from tidegate.live.transfer.page_state import COUNTERS
from tidegate.simulation.gpu.driver_constants import BACK_SOON, SEED, STAY_AWAY
from tidegate.trace.trace import Object

MAPPED_NEAR = 16  # remote pages at a time
# seconds: of a fault, which takes 115 to 125 µs on an idle machine; of unused observation
NOTIFICATION_STALL, BURST = 120e-6, 0.05


@dataclass(eq=False, slots=True)
class RegionState:
    """The page sets and counts of one region."""

    pages: int  # how many belong to an object
    near: int = 0
    arriving: int = 0  # near at the end of this turn
    faulted: int = 0
    wanted: int = 0  # to be prefetched
    remote: int = 0  # pages advised to stay in far memory
    sampled: int = 0
    left_far: int = 0  # sampled pages that a prefetch left far
    served: int = 0  # the turn in which it was served last
    evicted_in: int = -2  # the epoch in which it was evicted last
    remote_uses: int = -1  # since it got a counter
    queued: bool = False  # for prefetch
    pinned: bool = False  # by the program; policies do not see it
    faults: int = 0
    evictions: int = 0

    @property
    def resident(self) -> int:
        """Pages that are near or arrive in this turn."""
        return self.near | self.arriving

    @property
    def prefers_far(self) -> int:
        """Pages that are not migrated when they are used: advised so, or sampled."""
        return self.remote | self.sampled

    @property
    def has_frame(self) -> bool:
        """Whether it holds a frame: its pages are resident, or sampled from near memory."""
        return bool(self.near | self.arriving | self.sampled & ~self.left_far)

    @property
    def to_prefetch(self) -> int:
        """Wanted pages that are not resident and did not fault."""
        return self.wanted & ~(self.faulted | self.resident)


class Regions(dict[int, RegionState]):
    """The regions of an arena, by number."""

    def __init__(self, pages_per_region: int):
        self._ppr = pages_per_region

    def add(self, o: Object) -> None:
        """Add the regions of an object, unless they are here."""
        first = o.first_page // self._ppr
        for i in range(-(-o.pages // self._ppr)):
            if first + i not in self:
                self[first + i] = RegionState(min(self._ppr, o.pages - i * self._ppr))

    def named(self, number: Any) -> RegionState | None:
        """Return the region of this number, which a policy gave; None if there is none."""
        return self.get(int(number)) if isinstance(number, (int, np.integer)) else None

    def in_range(self, first: int, count: int) -> Iterator[tuple[int, RegionState, int]]:
        """Split a range of pages by region: number, region and pages."""
        for number in range(first // self._ppr, -(-(first + count) // self._ppr)):
            if (region := self.get(number)) is not None:
                low = max(0, first - number * self._ppr)
                high = min(region.pages, first + count - number * self._ppr)
                yield number, region, span(low, high)

    def served_longest_ago(self, before: int) -> int | None:
        """Return the resident region whose last turn is the oldest, and is before this one."""
        able = [n for n, r in self.items() if r.has_frame and not r.pinned and r.served < before]
        return min(able, key=lambda number: self[number].served, default=None)


def tree_prefetch(region: RegionState, faulted: int, threshold: int, leaves: int) -> int:
    """Return the pages that the tree rule prefetches (simulation/gpu/tree.py)."""
    occupied = region.resident | faulted
    wanted = 0
    for leaf in bits(faulted):
        best = 1 << leaf
        size = 2
        while size <= leaves:
            low = leaf // size * size
            high = min(low + size, region.pages)
            node = span(low, high)
            if (occupied & node).bit_count() * 100 > threshold * (high - low):
                best = node
            size *= 2
        wanted |= best
    return wanted & ~(occupied | region.prefers_far)


class Observation:
    """Samples pages of up to ``most`` regions at a time, so that their next uses are noticed.

    ``samples``: pages per region; 0 adapts it, after every ``watched`` evictions, to how many of
    the evicted regions return soon (ObservUVM, V-D). It makes the same draws as
    simulation/gpu/observation.py.
    """

    def __init__(self, most: int, samples: int, pages_per_region: int, watched: int):
        self.most, self._epoch_length = most, max(1, watched)
        self._fixed, self._samples = samples, samples or 1
        self._ppr = pages_per_region
        self._regions = self._pages = 0  # observed, sampled
        self._epoch = self._evictions = self._returned = self._returned_before = 0
        self._random = SEED

    @property
    def is_full(self) -> bool:
        """Whether no further region can be observed."""
        return self._regions >= self.most or self._pages >= COUNTERS

    def sample(self, region: RegionState) -> int:
        """Choose near pages of a region at random and note them; it keeps its frame.

        Return them; 0 if there are none.
        """
        able = region.near & ~region.remote
        left = able.bit_count()
        need = min(self._samples, left, COUNTERS - self._pages)
        if need < 1:
            return 0
        taken = 0
        for page in bits(able):
            if self._draw(left) < need:
                taken |= 1 << page
                need -= 1
                if need == 0:
                    break
            left -= 1
        region.near &= ~taken
        region.sampled |= taken
        self._regions += 1
        self._pages += taken.bit_count()
        return taken

    def leave_one_far(self, region: RegionState) -> int:
        """Choose one page, of those to be prefetched, that stays far, so that its use is noticed.

        Return it; 0 if there are too few.
        """
        able = region.to_prefetch
        others = region.faulted | region.resident
        # something must come
        enough = able.bit_count() + others.bit_count() >= 2
        if not able or not enough or self._pages >= COUNTERS or region.sampled:
            return 0
        chosen = 1 << list(bits(able))[self._draw(able.bit_count())]
        region.wanted &= ~chosen
        region.sampled |= chosen
        region.left_far |= chosen
        self._pages += 1
        return chosen

    def forget(self, region: RegionState) -> None:
        """Note that the region is not observed any more."""
        if region.sampled:
            self._regions -= bool(region.sampled & ~region.left_far)
            self._pages -= region.sampled.bit_count()
            region.sampled = region.left_far = 0

    def note_eviction(self, region: RegionState) -> None:
        """Count an eviction; at the end of an epoch, adapt by how many regions returned."""
        region.evicted_in = self._epoch
        self._evictions += 1
        if self._evictions < self._epoch_length:
            return
        if self._epoch > 0 and not self._fixed:
            back = self._returned_before / self._epoch_length
            if back > BACK_SOON:
                most = min(2 * self._samples, COUNTERS // self.most, self._ppr // 2)
                self._samples = max(1, most)
            elif 1 - back >= STAY_AWAY:
                self._samples = max(1, self._samples // 2)
        self._returned_before, self._returned = self._returned, 0
        self._epoch += 1
        self._evictions = 0

    def note_return(self, region: RegionState) -> None:
        """Count a region that returns in the epoch of its eviction, or in the next."""
        if region.evicted_in == self._epoch:
            self._returned += 1
        elif region.evicted_in == self._epoch - 1:
            self._returned_before += 1
        region.evicted_in = -2

    def _draw(self, n: int) -> int:
        """Return a number below ``n`` by xorshift64*, as simulation/gpu/observation.py does."""
        x = self._random
        x ^= x >> 12
        x = (x ^ x << 25) & (1 << 64) - 1
        x ^= x >> 27
        self._random = x
        return ((x * 0x2545F4914F6CDD1D & (1 << 64) - 1) >> 33) % n


class Allowance:
    """Limits observation to a share of time.

    It takes the pager's work, and a notification stops a thread for the cost of a fault. Unused
    time adds up to BURST seconds.
    """

    def __init__(self, share: float):
        self._share, self._seconds = share, BURST
        self._looked_at, self._cost = monotonic(), 0.0

    def is_left(self, observe_ns: int, notifications: int) -> bool:
        """Return whether observation may go on, from what it has cost so far."""
        if self._share >= 1:
            return True
        now, cost = monotonic(), observe_ns / 1e9 + notifications * NOTIFICATION_STALL
        earned, spent = self._share * (now - self._looked_at), cost - self._cost
        self._seconds = min(BURST, self._seconds + earned - spent)
        self._looked_at, self._cost = now, cost
        return self._seconds > 0


class RemotePages:
    """Remote pages that are mapped near for now, with their access counts.

    A processor cannot use a far page, so a few remote pages at a time are mapped near. Their uses
    can be counted, as a GPU counts accesses over its link: the placement policy is notified of a
    region whose count reaches the policy's threshold.
    """

    def __init__(self, pages_per_region: int) -> None:
        self._ppr = pages_per_region
        self.near: deque[int] = deque()
        self._counters_used = 0
        self.threshold = 0  # uses until a notification; 0: uses are not counted

    def map_near(self, page: int) -> int | None:
        """Note that this page is mapped near; return the page that must leave for it, if any."""
        leaving = None
        if page in self.near:
            self.near.remove(page)
        elif len(self.near) == MAPPED_NEAR:
            leaving = self.near.popleft()
        self.near.append(page)
        return leaving

    def forget(self, number: int) -> None:
        """Forget the pages of this region: it has a frame now, or is gone."""
        self.near = deque(p for p in self.near if p // self._ppr != number)

    def count(self, region: RegionState) -> bool:
        """Count one use; return whether the threshold is reached."""
        if not self.threshold:
            return False
        if region.remote_uses < 0:
            if self._counters_used >= COUNTERS:
                return False
            self._counters_used += 1
            region.remote_uses = 0
        region.remote_uses += 1
        if region.remote_uses != self.threshold:
            return False
        region.remote_uses = -1
        self._counters_used -= 1
        return True


def bits(mask: int) -> Iterator[int]:
    """Return the numbers of the bits that are set, from the lowest.

    >>> list(bits(0b1101))
    [0, 2, 3]
    """
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def runs(mask: int) -> Iterator[tuple[int, int]]:
    """Return runs of set bits as (first, length).

    >>> list(runs(0b1100110))
    [(1, 2), (5, 2)]
    """
    while mask:
        first = (mask & -mask).bit_length() - 1
        length = (~(mask >> first) & (mask >> first) + 1).bit_length() - 1
        yield first, length
        mask &= ~span(first, first + length)


def span(low: int, high: int) -> int:
    """Return bits ``low`` to ``high - 1``."""
    return (1 << high) - (1 << low) if high > low else 0
