"""Pages that prefer far memory: a processor cannot use what is far, so a few of them are lent near
memory in turn.

Their uses can be counted, as the hardware counts accesses over its link: a policy that asked for it
hears of a region whose uses reached the number it gave.
"""

from __future__ import annotations

from collections import deque

from tidegate.live.pager.region import Region
from tidegate.live.transfer.sampled_pages import COUNTERS

LENT = 16  # pages at a time


class Lent:
    """Who has some of it, and who has been counted."""

    def __init__(self, pages_per_region: int) -> None:
        self._ppr = pages_per_region
        self._pages: deque[int] = deque()
        self._counting = 0
        self.threshold = 0  # uses until a policy hears of them; 0: nobody asked

    def lend(self, page: int) -> int | None:
        """To this page. Answers the one that had it longest and must go, if it is one too many."""
        gone = None
        if page in self._pages:
            self._pages.remove(page)
        elif len(self._pages) == LENT:
            gone = self._pages.popleft()
        self._pages.append(page)
        return gone

    def own_now(self, number: int) -> None:
        """What this region was lent is its own now, or its object is gone."""
        if self._pages:
            self._pages = deque(p for p in self._pages if p // self._ppr != number)

    def count(self, region: Region) -> bool:
        """One use more. Has it been enough for somebody to hear of it?"""
        if not self.threshold:
            return False
        if region.counted < 0:
            if self._counting >= COUNTERS:
                return False
            self._counting += 1
            region.counted = 0
        region.counted += 1
        if region.counted != self.threshold:
            return False
        region.counted = -1
        self._counting -= 1
        return True
