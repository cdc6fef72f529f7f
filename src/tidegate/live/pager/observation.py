"""Observation: which pages of a region are sampled, so that its next use is noticed.

It makes the same draws as simulation/gpu/observation.py (ObservUVM, IV and V). How many pages are
sampled per region adapts to how soon evicted regions return (V-D).
"""

from __future__ import annotations

from tidegate.live.pager.region import RegionState, bits
from tidegate.live.transfer.page_state import COUNTERS
from tidegate.simulation.gpu.memory import SEED
from tidegate.simulation.gpu.observation import BACK_SOON, STAY_AWAY


class Observation:
    """Samples pages of up to ``most`` regions at a time.

    ``samples``: pages per region; 0 adapts it after every ``watched`` evictions.
    """

    def __init__(self, most: int, samples: int, pages_per_region: int, watched: int):
        self.most, self._epoch_length = most, max(1, watched)
        self._fixed, self._samples = samples, samples or 1
        self._ppr = pages_per_region
        self._regions = self._pages = 0  # observed, sampled
        self._epoch = self._evictions = self._returned = self._returned_before = 0
        self._random = SEED

    @property
    def is_full(self) -> bool:
        """Whether no further region can be observed."""
        return self._regions >= self.most or self._pages >= COUNTERS

    def sample(self, region: RegionState) -> int:
        """Choose near pages of a region at random and note them; at least one page stays near.

        Return them; 0 if there are too few.
        """
        able = region.near & ~region.remote
        left = able.bit_count()
        need = min(self._samples, left - 1, COUNTERS - self._pages)
        if need < 1:
            return 0
        taken = 0
        for page in bits(able):
            if self._draw(left) < need:
                taken |= 1 << page
                need -= 1
                if need == 0:
                    break
            left -= 1
        region.near &= ~taken
        region.remote |= taken
        region.sampled |= taken
        self._regions += 1
        self._pages += taken.bit_count()
        return taken

    def leave_one_far(self, region: RegionState) -> int:
        """Choose one page, of those to be prefetched, that stays far, so that its use is noticed.

        Return it; 0 if there are too few.
        """
        able = region.to_prefetch
        others = region.faulted | region.resident
        # a region must not hold its frame with no page in it
        enough = able.bit_count() + others.bit_count() >= 2
        if not able or not enough or self._pages >= COUNTERS or region.sampled:
            return 0
        chosen = 1 << list(bits(able))[self._draw(able.bit_count())]
        region.remote |= chosen
        region.wanted &= ~chosen
        region.sampled |= chosen
        region.left_far |= chosen
        self._pages += 1
        return chosen

    def forget(self, region: RegionState) -> None:
        """Note that the region is not observed any more."""
        if region.sampled:
            self._regions -= bool(region.sampled & ~region.left_far)
            self._pages -= region.sampled.bit_count()
            region.remote &= ~region.sampled
            region.sampled = region.left_far = 0

    def note_eviction(self, region: RegionState) -> None:
        """Count an eviction; at the end of an epoch, adapt to how many of the one before returned."""
        region.evicted_in = self._epoch
        self._evictions += 1
        if self._evictions < self._epoch_length:
            return
        if self._epoch > 0 and not self._fixed:
            back = self._returned_before / self._epoch_length
            if back > BACK_SOON:
                most = min(2 * self._samples, COUNTERS // self.most, self._ppr // 2)
                self._samples = max(1, most)
            elif 1 - back >= STAY_AWAY:
                self._samples = max(1, self._samples // 2)
        self._returned_before, self._returned = self._returned, 0
        self._epoch += 1
        self._evictions = 0

    def note_return(self, region: RegionState) -> None:
        """Count a region that returns in the epoch of its eviction, or in the next."""
        if region.evicted_in == self._epoch:
            self._returned += 1
        elif region.evicted_in == self._epoch - 1:
            self._returned_before += 1
        region.evicted_in = -2

    def _draw(self, n: int) -> int:
        """Return a number below ``n`` by xorshift64*, as simulation/gpu/observation.py does."""
        x = self._random
        x ^= x >> 12
        x = (x ^ x << 25) & (1 << 64) - 1
        x ^= x >> 27
        self._random = x
        return ((x * 0x2545F4914F6CDD1D & (1 << 64) - 1) >> 33) % n
