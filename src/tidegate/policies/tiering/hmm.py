"""HMM: tiers by the host's page cache."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.policies.interface.tier_policy import Tier, TierPolicy
from tidegate.policies.registries import tiering


@tiering("hmm")
class HMM(TierPolicy):
    """The host's page cache is the middle, and the CPU serves every miss (GMT 3.6).

    What the SSD reads passes through the cache, which keeps it: near pages have copies there, so
    clean victims are dropped and dirty ones copied back. Linux reads 128 KiB around a page that is
    missing (``read_ahead_kb``). The oldest page makes room; Linux's second list is left out.
    """

    service = "cpu"
    cached = Option("inclusive", "copies of near pages in it", choices=("inclusive", "exclusive"))
    ahead = Option(2, "pages of 64 KiB that an SSD read brings", least=1, most=1024)

    @property
    def inclusive(self) -> bool:
        return bool(self.cached == "inclusive")

    @property
    def read_ahead_pages(self) -> int:
        return int(self.ahead)

    def place(self, page: int) -> int:
        return Tier.MIDDLE
