"""A region as the engine sees it: sets of its pages, each the bits of a number."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.live.pager.page_bits import bits, span


@dataclass(eq=False, slots=True)
class Region:
    """One region's page sets."""

    pages: int  # how many belong to an object
    near: int = 0
    coming: int = 0
    faulted: int = 0
    wanted: int = 0
    remote: int = 0  # prefers far memory; sampled pages do
    sampled: int = 0
    left_far: int = 0  # the sampled pages that a prefetch left where they were
    served: int = 0  # the turn in which it was served last
    left_in: int = -2  # the epoch in which it was evicted last
    counted: int = -1  # remote accesses since it got a counter
    queued: bool = False
    held: bool = False  # pinned by the user: no policy's business
    faults: int = 0
    evictions: int = 0

    @property
    def here(self) -> int:
        return self.near | self.coming

    @property
    def to_come(self) -> int:
        """Wanted, and neither here nor coming by a fault of their own."""
        return self.wanted & ~(self.faulted | self.here)


def want_subtrees(region: Region, faulted: int, threshold: int, leaves: int) -> int:
    """What the tree rule prefetches (simulation/gpu/tree.py)."""
    occupied = region.here | faulted
    wanted = 0
    for leaf in bits(faulted):
        best = 1 << leaf
        size = 2
        while size <= leaves:
            low = leaf // size * size
            high = min(low + size, region.pages)
            node = span(low, high)
            if (occupied & node).bit_count() * 100 > threshold * (high - low):
                best = node
            size *= 2
        wanted |= best
    return wanted & ~(occupied | region.remote)
