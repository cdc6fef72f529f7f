"""Tiers by the host's page cache."""

from __future__ import annotations

from tidegate.compiled.jit import jit_policy
from tidegate.policies.interface.tier_events import PLACE
from tidegate.policies.interface.tier_policy import MIDDLE, TierPolicy, TierTwin
from tidegate.policies.registries import tiering


@jit_policy
def _hmm(own: int, event: int) -> int:
    return MIDDLE if event & 255 == PLACE else 0


@tiering("hmm")
class HMM(TierPolicy):
    """Victims go to the host's page cache, whose oldest page makes room; the CPU serves every miss
    (GMT 3.6).

    It places as ``tier-order`` does and differs in who does the work: one driver, one miss after
    another.
    """

    service = "cpu"
    compiled = TierTwin(_hmm)

    def place(self, page: int) -> int:
        return MIDDLE
