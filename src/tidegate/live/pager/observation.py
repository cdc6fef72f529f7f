"""Observation: which pages of a region are taken away, so that its next use is noticed (ObservUVM,
IV and V).

It is the plain twin of simulation/gpu/observation.py, draw for draw: how many pages are sampled per
region adapts (V-D) to how soon evicted regions are back.
"""

from __future__ import annotations

from tidegate.live.pager.page_bits import bits
from tidegate.live.pager.region import Region
from tidegate.live.transfer.sampled_pages import COUNTERS
from tidegate.simulation.gpu.memory import SEED
from tidegate.simulation.gpu.observation import BACK_SOON, STAY_AWAY


class Observation:
    """At most ``most`` regions are observed at a time.

    ``samples``: pages of each; 0 adapts it by ``watched`` evictions.
    """

    def __init__(self, most: int, samples: int, pages_per_region: int, watched: int):
        self.most, self._watch = most, max(1, watched)
        self._fixed, self._samples = samples, samples or 1
        self._ppr = pages_per_region
        self._regions = self._pages = 0  # observed, sampled
        self._epoch = self._evictions = self._returned = self._returned_before = 0
        self._random = SEED

    @property
    def is_full(self) -> bool:
        """Is there no counter, or no region, to spare?"""
        return self._regions >= self.most or self._pages >= COUNTERS

    def sample(self, region: Region) -> int:
        """Choose near pages to take away, each choice as likely as any other; one page at least
        stays. None if it is 0.
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

    def leave_one_far(self, region: Region) -> int:
        """Of the pages about to be prefetched, one that stays where it is, so that the prefetch's
        use is noticed; or 0.
        """
        coming = region.to_come
        others = region.faulted | region.here
        # a region must not hold its frame with no page in it
        enough = coming.bit_count() + others.bit_count() >= 2
        if not coming or not enough or self._pages >= COUNTERS or region.sampled:
            return 0
        chosen = 1 << list(bits(coming))[self._draw(coming.bit_count())]
        region.remote |= chosen
        region.wanted &= ~chosen
        region.sampled |= chosen
        region.left_far |= chosen
        self._pages += 1
        return chosen

    def forget(self, region: Region) -> None:
        """The region is observed no longer."""
        if region.sampled:
            self._regions -= bool(region.sampled & ~region.left_far)
            self._pages -= region.sampled.bit_count()
            region.remote &= ~region.sampled
            region.sampled = region.left_far = 0

    def leaves(self, region: Region) -> None:
        """An eviction.

        They are counted in epochs; at the end of each, judge by the regions of the one before.
        """
        region.left_in = self._epoch
        self._evictions += 1
        if self._evictions < self._watch:
            return
        if self._epoch > 0 and not self._fixed:
            back = self._returned_before / self._watch
            if back > BACK_SOON:
                self._samples = max(
                    1, min(2 * self._samples, COUNTERS // self.most, self._ppr // 2)
                )
            elif 1 - back >= STAY_AWAY:
                self._samples = max(1, self._samples // 2)
        self._returned_before, self._returned = self._returned, 0
        self._epoch += 1
        self._evictions = 0

    def returns(self, region: Region) -> None:
        """A region without a frame faulted: was it evicted a short while ago?"""
        if region.left_in == self._epoch:
            self._returned += 1
        elif region.left_in == self._epoch - 1:
            self._returned_before += 1
        region.left_in = -2

    def _draw(self, n: int) -> int:
        """xorshift64*, as in simulation/gpu/observation.py."""
        x = self._random
        x ^= x >> 12
        x = (x ^ x << 25) & (1 << 64) - 1
        x ^= x >> 27
        self._random = x
        return ((x * 0x2545F4914F6CDD1D & (1 << 64) - 1) >> 33) % n
