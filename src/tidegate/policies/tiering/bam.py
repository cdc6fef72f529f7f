"""BaM: two tiers."""

from __future__ import annotations

from tidegate.policies.interface.tier_policy import FAR, TierPolicy
from tidegate.policies.registries import tiering


@tiering("bam")
class BaM(TierPolicy):
    """Near memory and the SSD, with nothing between (BaM, ASPLOS'23): GMT's baseline."""

    keeps_middle = False

    def place(self, page: int) -> int:
        return FAR
