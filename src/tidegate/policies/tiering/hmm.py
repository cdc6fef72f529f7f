"""HMM: tiers by the host's page cache."""

from __future__ import annotations

from tidegate.policies.interface.tier_policy import MIDDLE, TierPolicy
from tidegate.policies.registries import tiering


@tiering("hmm")
class HMM(TierPolicy):
    """Victims go to the host's page cache, whose oldest page makes room; the CPU serves every miss
    (GMT 3.6).

    It places pages as ``tier-order`` does. Only the service differs: one driver serves one miss
    after another.
    """

    service = "cpu"

    def place(self, page: int) -> int:
        return MIDDLE
