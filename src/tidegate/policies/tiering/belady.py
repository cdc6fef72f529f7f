"""TierBelady: the bound."""

from __future__ import annotations

from tidegate.policies.interface.tier_policy import NEVER, Spill, Tier, TierPolicy
from tidegate.policies.interface.visibility import Everything
from tidegate.policies.registries import tiering
from tidegate.policies.structures.heap import Heap

_MOST_URGENT = 2 * NEVER  # above every time and page added up


@tiering("tier-belady")
class TierBelady(TierPolicy):
    """Near memory loses the page used furthest in the future. So does the middle, where the page
    that arrives counts too.

    Belady's choice over three tiers. The near tier has the misses of Belady in its capacity, both
    tiers together those of Belady in both: no placement reads less from the SSD. Writes are not
    part of it, so that with dirty pages it is a bound on reads, not on time. It costs 4 bytes per
    touch of the trace.
    """

    sees = Everything(future=True)

    @property
    def makes_room(self) -> Spill:
        return Spill.ASKED

    def start(self) -> None:
        self._near, self._middle = Heap(), Heap()  # the page whose use is least urgent first

    def on_return(self, page: int) -> None:
        if page in self._middle:
            self._middle.remove(page)

    def on_touch(self, page: int) -> None:
        self._near[page] = self._urgency(page)

    def victim(self) -> int:
        return self._near.lowest

    def place(self, page: int) -> int:
        urgency = self._near[page]
        self._near.remove(page)
        if self.memory.middle_used == self.memory.middle_pages and (
            not self._middle or urgency < self._middle[self._middle.lowest]
        ):
            return Tier.FAR
        self._middle[page] = urgency
        return Tier.MIDDLE

    def spill(self) -> int:
        page = self._middle.lowest
        self._middle.remove(page)
        return page

    def _urgency(self, page: int) -> int:
        """Return a number that is lower the later a page is used.

        No two pages have the same: of those that are not used again, the higher has the lower.
        """
        use = self.memory.next_use(page)
        return _MOST_URGENT - (use + page if use == NEVER else use)
