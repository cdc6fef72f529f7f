"""The stream prefetcher: one fault for a region of a stream, the tree's decisions elsewhere."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from live.sequences import GEOMETRY
from tidegate.live.pager.engine import Engine
from tidegate.live.pager.no_mover import NoMover
from tidegate.policies.prefetch.together import make_prefetch
from tidegate.policies.registries import eviction, placement
from tidegate.trace.trace import Object
from traces import PAGES, machine, one_block, reads, run_of

REGIONS, FRAMES = 24, 40  # all fits: faults are first uses


def faults(pages: list[int], prefetch: str) -> int:
    trace = one_block(reads(pages), [REGIONS * PAGES])
    return run_of(trace, machine(), FRAMES, eviction="lrm", prefetch=prefetch).counts["faults"]


def in_order(regions: Iterable[int]) -> list[int]:
    return [r * PAGES + p for r in regions for p in range(PAGES)]


@pytest.mark.parametrize("regions", [range(REGIONS), range(REGIONS - 1, -1, -1)])
def test_a_stream_faults_once_in_a_region(regions: range) -> None:
    per_region = faults(in_order(range(1)), "tree")
    assert per_region > 1
    assert faults(in_order(regions), "tree") == REGIONS * per_region
    assert faults(in_order(regions), "stream") == 2 * per_region + REGIONS - 2


def test_two_streams_at_a_time() -> None:
    """With more faults in a region than the window, by the tree, as regions of 32 pages have."""
    half = REGIONS // 2
    both = [
        p
        for r in range(half)
        for q in range(PAGES)
        for p in (r * PAGES + q, (half + r) * PAGES + q)
    ]
    per_region = faults(in_order(range(1)), "tree")
    assert faults(both, "stream(window=3)") == 2 * (2 * per_region + half - 2)


def test_scattered_uses_are_the_trees() -> None:
    scattered = (np.random.default_rng(1).permutation(REGIONS // 3) * 3 * PAGES).tolist()
    assert faults(scattered, "stream") == faults(scattered, "tree") == len(scattered)


def test_a_stream_may_be_asked_to_be_longer() -> None:
    per_region = faults(in_order(range(1)), "tree")
    pages = in_order(range(REGIONS))
    assert faults(pages, "stream(least=5)") == 5 * per_region + REGIONS - 5


def test_a_stream_goes_on_behind_resident_regions() -> None:
    """The second pass misses every third region only, one fault in each."""
    there = [r for r in range(REGIONS) if r % 3]
    missed = range(0, REGIONS, 3)
    pages = in_order(there) + in_order(missed)
    per_region = faults(in_order(range(1)), "tree")
    first_pass = faults(in_order(there), "stream(skip=0)")
    after = faults(pages, "stream") - faults(in_order(there), "stream")
    assert after == 2 * per_region + len(missed) - 2
    assert faults(pages, "stream(skip=0)") - first_pass == per_region * len(missed)


def test_uses_in_the_middle_of_regions_are_no_stream() -> None:
    middle = [r * PAGES + PAGES // 2 for r in range(REGIONS)]
    assert faults(middle, "stream") == faults(middle, "tree") == REGIONS
    pages = [p for m in middle for p in (m, m - 1)]
    assert faults(pages, "stream") == faults(pages, "tree")


def test_a_walk_back_by_blocks_is_a_stream() -> None:
    """Each region is entered in its middle and used to both ends, the lower half last."""
    half = PAGES // 2
    pages = [b * half + p for b in range(2 * REGIONS - 1, -1, -1) for p in range(half)]
    per_region = faults(pages[:PAGES], "tree")
    assert per_region > 2
    assert faults(pages, "stream") == 2 * per_region + REGIONS - 2


def test_a_region_that_is_handed_back_is_no_stream() -> None:
    """Live memory tells of a region that was pinned as of a fault, without pages."""
    policies = eviction.make("lrm"), make_prefetch("stream"), placement.make("um")
    engine = Engine(GEOMETRY, 4, policies, NoMover())
    engine.set_objects((Object("a", 4 * GEOMETRY.region, 0, 4 * GEOMETRY.pages_per_region),))
    engine.start()
    engine.pin(1)
    engine.unpin(1)
    assert engine.region[1].near
