"""Two tiers."""

from __future__ import annotations

from tidegate.compiled.jit import jit_policy
from tidegate.policies.interface.tier_events import PLACE
from tidegate.policies.interface.tier_policy import FAR, TierPolicy, TierTwin
from tidegate.policies.registries import tiering


@jit_policy
def _bam(own: int, event: int) -> int:
    return FAR if event & 255 == PLACE else 0


@tiering("bam")
class BaM(TierPolicy):
    """Near memory and the SSD, with nothing between (BaM, ASPLOS'23): GMT's baseline."""

    keeps_middle = False
    compiled = TierTwin(_bam)

    def place(self, page: int) -> int:
        return FAR
