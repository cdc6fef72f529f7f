"""Allocators: live tensors never overlap, and the caching model keeps its rules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from op_lists import KIB, MIB, chain, small_ops
from tidegate.errors import UnknownName
from tidegate.trace.ops import Ops, OpsBuilder
from tidegate.trace.ops.allocators import ALLOCATORS, SMALL, SMALLEST, place
from tidegate.trace.trace import Provenance


def live_ranges(ops: Ops, allocator: str):
    """Yield after each event the live (object, first, end) ranges."""
    places, lives = place(ops, allocator), ops.instances
    size = ops.tensors["bytes"].to_numpy()[lives.tensor]
    births = {event: n for n, event in enumerate(lives.birth.tolist())}
    deaths = {event: n for n, event in enumerate(lives.death.tolist()) if event >= 0}
    live: dict[int, tuple[int, int, int]] = {}
    for event in range(len(ops.events)):
        if event in births:
            n = births[event]
            at = int(places.offset[n])
            live[n] = (int(places.object[n]), at, at + int(size[n]))
        else:
            n = deaths[event]
            owner, first, end = live.pop(n)
            if not places.own[n]:
                low, high = places.dead[n].tolist()
                assert low <= first < end <= high
                for other, a, b in live.values():  # all around is free
                    assert other != owner or b <= low or a >= high
        yield places, list(live.values())


@pytest.mark.slow
@pytest.mark.parametrize("allocator", ALLOCATORS)
@settings(max_examples=40, deadline=None)
@given(ops=small_ops())
def test_live_tensors_do_not_overlap_and_lie_within_their_objects(allocator, ops):
    for places, live in live_ranges(ops, allocator):
        sizes = list(places.objects.values())
        for n, (owner, first, end) in enumerate(sorted(live)):
            assert 0 <= first < end <= sizes[owner]
            for other, a, b in sorted(live)[n + 1 :]:
                assert owner != other or end <= a or b <= first


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(ops=small_ops())
def test_blocks_are_aligned_and_no_more_is_live_than_reserved(ops):
    for places, live in live_ranges(ops, "caching"):
        assert all(first % SMALLEST == 0 for _, first, _ in live)
        assert sum(end - first for _, first, end in live) <= sum(places.objects.values())


@settings(max_examples=40, deadline=None)
@given(ops=small_ops())
def test_large_tensors_have_objects_of_their_own(ops):
    places = place(ops, "tensors")
    large = ops.tensors["bytes"].to_numpy()[ops.instances.tensor] > SMALL
    assert np.array_equal(places.own, large)
    owners = places.object[large]
    tensors = ops.instances.tensor[large]
    assert len(set(owners.tolist())) == len(set(tensors.tolist()))
    assert not set(owners.tolist()) & set(places.object[~large].tolist())


def segments(*events: int | tuple[int, int]) -> list[tuple[int, int]]:
    """Allocate sizes and free (by a negative number of the allocation); return the places."""
    build = OpsBuilder()
    tensors = []
    for event in events:
        if event < 0:
            build.die(tensors[-event - 1])
        else:
            tensors.append(build.tensor("t", "activation", event))
    build.launch("mm")
    build.use(tensors[-1], 0, 1)
    places = place(build.finish("a", Provenance.ASSUMED), "caching")
    return list(zip(places.object.tolist(), places.offset.tolist(), strict=True))


@pytest.mark.closed_form
def test_segments_by_size():
    sizes = [1, 513, MIB, MIB + 1, 10 * MIB, 30 * MIB + 1]
    build = OpsBuilder()
    for size in sizes:
        build.tensor("t", "activation", size)
    build.launch("mm")
    build.use(0, 0, 1)
    places = place(build.finish("a", Provenance.ASSUMED), "caching")
    # 1 B and 513 B share a small segment with 1 MiB; 1 MiB + 1 gets one of 20 MiB, and 10 MiB fit
    # behind it; the last gets one of its own size, rounded to 2 MiB
    assert list(places.objects.values()) == [2 * MIB, 20 * MIB, 32 * MIB]
    assert places.object.tolist() == [0, 0, 0, 1, 1, 2]
    assert places.offset.tolist() == [0, 512, 512 + 1024, 0, MIB + 512, 0]


@pytest.mark.closed_form
def test_the_smallest_free_block_is_taken_and_neighbours_merge():
    a, b, c = 256 * KIB, 128 * KIB, 64 * KIB
    # three blocks; the first and the third are freed: a new small one goes to the third, whose
    # free block (with the rest of the segment) is larger than the first
    assert segments(a, b, c, -1, -3, c)[3] == (0, 0)
    # all are freed: one free block of 2 MiB again, and the next begins at its start
    assert segments(a, b, c, -1, -3, -2, MIB)[3] == (0, 0)
    # the second is freed last and merges with both neighbours
    assert segments(a, b, c, -1, -2, a + b)[3] == (0, 0)


def test_an_unknown_allocator_is_named():
    with pytest.raises(UnknownName, match="did you mean 'caching'"):
        place(chain([1, 1]), "cachin")
