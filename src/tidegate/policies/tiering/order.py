"""Each tier holds the victims of the one above."""

from __future__ import annotations

from tidegate.compiled.jit import jit_policy
from tidegate.policies.interface.tier_events import PLACE
from tidegate.policies.interface.tier_policy import MIDDLE, TierPolicy, TierTwin
from tidegate.policies.registries import tiering


@jit_policy
def _order(own: int, event: int) -> int:
    return MIDDLE if event & 255 == PLACE else 0


@tiering("tier-order")
class TierOrder(TierPolicy):
    """Every victim goes to the middle, whose oldest page makes room (GMT-TierOrder, 2.1.1).

    The paper has CLOCK in the middle in 2.1.1 and FIFO in 2.2. They are the same there: a page of
    the middle that is used leaves it, so that no page ever has a second chance to claim.
    """

    compiled = TierTwin(_order)

    def place(self, page: int) -> int:
        return MIDDLE
