"""The stream prefetcher: one fault for a region of a stream, the tree's decisions elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from traces import PAGES, machine, one_block, reads, run_of

REGIONS, FRAMES = 24, 40  # all fits: faults are first uses


def faults(pages: list[int], prefetch: str) -> int:
    trace = one_block(reads(pages), [REGIONS * PAGES])
    return run_of(trace, machine(), FRAMES, eviction="lrm", prefetch=prefetch).counts["faults"]


def in_order(regions: range) -> list[int]:
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
