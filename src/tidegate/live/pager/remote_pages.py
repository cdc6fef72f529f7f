"""Remote pages: those that prefer far memory.

A processor cannot use a far page, so a few remote pages at a time are mapped near. Their uses can
be counted, as a GPU counts accesses over its link: the placement policy is notified of a region
whose count reaches the policy's threshold.
"""

from __future__ import annotations

from collections import deque

from tidegate.live.pager.region import RegionState
from tidegate.live.transfer.page_state import COUNTERS

MAPPED_NEAR = 16  # remote pages at a time


class RemotePages:
    """Remote pages that are mapped near for now, and their counts."""

    def __init__(self, pages_per_region: int) -> None:
        self._ppr = pages_per_region
        self._near: deque[int] = deque()
        self._counters_used = 0
        self.threshold = 0  # uses until a notification; 0: uses are not counted

    def map_near(self, page: int) -> int | None:
        """Note that this page is mapped near; return the page that must leave for it, if any."""
        leaving = None
        if page in self._near:
            self._near.remove(page)
        elif len(self._near) == MAPPED_NEAR:
            leaving = self._near.popleft()
        self._near.append(page)
        return leaving

    def forget(self, number: int) -> None:
        """Forget the pages of this region: it has a frame now, or is gone."""
        if self._near:
            self._near = deque(p for p in self._near if p // self._ppr != number)

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
