"""Addresses of an arena: what several threads take at a time, each gets for itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tidegate.live.arena.free_runs import FreeRuns

pytestmark = pytest.mark.live


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty")
def test_threads_never_get_the_same_regions() -> None:
    space, taken = FreeRuns(10_000), [0] * 10_000
    for region in range(1000, 2000, 2):
        # free memory in many pieces, so that putting them together takes a while
        space.take_at(region, 1)

    def use(n: int) -> None:
        for _ in range(300):
            first = space.take(n)
            for region in range(first, first + n):
                taken[region] += 1
                assert taken[region] == 1
            for region in range(first, first + n):
                taken[region] -= 1
            space.give_back(first, n)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(use, [1, 2, 3, 4]))
    for region in range(1000, 2000, 2):
        space.give_back(region, 1)
    assert space.take(10_000) == 0  # all of it is free, and in one piece
