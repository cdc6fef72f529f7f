"""Placements that never change: TierOrder, where each tier holds the victims of the one above, and
BaM, which has no middle.
"""

from __future__ import annotations

from tidegate.policies.interface.tier_policy import Tier, TierPolicy
from tidegate.policies.registries import tiering


@tiering("tier-order")
class TierOrder(TierPolicy):
    """Every victim goes to the middle, whose oldest page makes room (GMT-TierOrder, 2.1.1).

    The paper has CLOCK in the middle in 2.1.1 and FIFO in 2.2. They are the same there: a page of
    the middle that is used leaves it, so no page is ever given a second chance.
    """

    def place(self, page: int) -> int:
        return Tier.MIDDLE


@tiering("bam")
class BaM(TierPolicy):
    """Near memory and the SSD, with nothing between (BaM, ASPLOS'23): GMT's baseline."""

    keeps_middle = False

    def place(self, page: int) -> int:
        return Tier.FAR
