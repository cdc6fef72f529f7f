"""The default of live memory: cyclic protection that learns from evictions alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from live.sequences import GEOMETRY, pages_read
from policies.test_observuvm import FakeMemory, arrive, leave, started
from tidegate.policies.registries import eviction
from tidegate.trace.trace import lay_out

FRAMES, HOT, REST = 64, 24, 72  # regions


def test_nothing_is_observed_while_frames_are_free() -> None:
    p = started(eviction.make("loop"), FakeMemory(frames=8))
    arrive(p, *range(8))
    assert p.observe() is None
    leave(p)
    arrive(p, 8)
    assert p.observe() is not None
    p.on_free(8)  # an array is gone
    assert p.observe() is None


def test_a_region_that_is_used_near_the_split_is_not_the_next_victim() -> None:
    p = started(eviction.make("loop"), FakeMemory(frames=8))
    arrive(p, *range(8))
    assert leave(p) == 4
    arrive(p, 8)
    assert p.observe() == 5
    p.on_notification(5)
    assert list(p._open) == [3, 6, 7, 8, 5]


def pages_in(policy: str, regions: list[int]) -> int:
    pages = GEOMETRY.pages_per_region
    objects = lay_out({"a": (HOT + REST) * GEOMETRY.region}, GEOMETRY)
    uses = [r * pages + p for r in regions for p in range(pages)]
    return pages_read(uses, objects, GEOMETRY, FRAMES, policy, "region") // pages


def scan_beside_hot() -> list[int]:
    """A few regions of a long scan at a time, all of the hot ones in between."""
    hot, rest = range(HOT), range(HOT, HOT + REST)
    parts = [[*rest[i : i + 9], *hot] for _ in range(3) for i in range(0, REST, 9)]
    return list(itertools.chain(*parts))


def loop() -> list[int]:
    return [*range(HOT + REST)] * 8


def back_and_forth() -> list[int]:
    return [*range(HOT + REST), *range(HOT + REST - 1, -1, -1)] * 4


@pytest.mark.parametrize("walk", [scan_beside_hot, loop, back_and_forth])
def test_it_is_within_a_tenth_of_the_best_policy(walk: Callable[[], list[int]]) -> None:
    read = {p: pages_in(p, walk()) for p in ("loop", "mru", "lru", "lrm")}
    assert read["loop"] <= 1.1 * min(read.values()), read
    assert read["lrm"] > 1.2 * min(read.values()), read


def test_a_scan_does_not_drive_the_hot_regions_out_as_under_cp() -> None:
    assert pages_in("loop", scan_beside_hot()) < 0.75 * pages_in("cp", scan_beside_hot())
