"""Room is made ahead of need."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.policies.placement.plans.copy_plan import CopyPlan
from tidegate.policies.registries import placement
from tidegate.units import size


@placement("look-ahead")
class LookAhead(CopyPlan):
    """Bring the next missing pieces while kernels run, and make room for them early: the pieces
    used furthest ahead leave, as Belady would choose with pieces for pages.

    Room is made early only while less than ``ahead`` waits for the inward stream: the later a
    choice is made, the better it is. Nor does anything leave if data that die before the need make
    enough room. The policy is ours; DeepSpeed's and vDNN's prefetchers do it for one kind of data.
    """

    ahead = Option(256 << 20, "bytes for which room is made before they are needed", parse=size)

    def make_room(self, launch: int, needed: int, piece: int) -> bool:
        if needed > launch:
            dead = int(self.forecast.dead[needed] - self.forecast.dead[launch])
            enough = self.waiting * self.forecast.region_bytes >= self.ahead
            if enough or self.lacking(piece) <= dead:
                return self.evict_unused(piece)
        return self.evict_furthest(needed, piece)
