"""With one slot Belady's future is exact, and nobody has fewer faults."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.policies.registries import eviction
from tidegate.simulation.gpu.future import NEVER, foresee
from traces import PAGES, Given, Kernel, flat, machine, one_block, reads, run_of

pytestmark = pytest.mark.oracle

OTHERS = [name for name in eviction.names() if name != "belady"]


def drawn(seed: int, touches: int, distinct: int) -> list[int]:
    """Long sequences, which hypothesis by itself rarely tries."""
    return np.random.default_rng(seed).integers(0, distinct, touches).tolist()


SEQUENCES = st.lists(st.integers(0, 9), min_size=1, max_size=60) | st.builds(
    drawn, st.integers(0, 999), st.integers(100, 400), st.integers(2, 30)
)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(SEQUENCES, st.integers(1, 12))
def test_nobody_beats_belady_with_one_slot(ids, frames):
    trace = flat(ids)
    best = run_of(trace, machine(), frames, eviction="belady").counts["faults"]
    assert best >= len(set(ids))
    for other in OTHERS:
        assert run_of(trace, machine(), frames, eviction=other).counts["faults"] >= best, other


@pytest.mark.slow
@settings(deadline=None, max_examples=60, derandomize=True)
@given(SEQUENCES, st.integers(1, 12), st.integers(0, 999))
def test_nobody_beats_belady_in_whole_regions_either(ids, frames, seed):
    """Any page of the region may be the one that is touched: the whole region comes with it."""
    pages = [
        region * PAGES + page
        for region, page in zip(ids, drawn(seed, len(ids), PAGES), strict=True)
    ]
    trace = one_block(reads(pages), [(max(ids) + 1) * PAGES])
    best = run_of(trace, machine(), frames, eviction="belady", prefetch="region").counts["faults"]
    for other in OTHERS:
        assert (
            run_of(trace, machine(), frames, eviction=other, prefetch="region").counts["faults"]
            >= best
        ), other


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=11), st.integers(1, 4))
def test_belady_is_the_best_of_all_choices(ids, frames):
    """Against trying out every victim at every fault."""

    def fewest(at: int, near: frozenset[int]) -> int:
        while at < len(ids) and ids[at] in near:
            at += 1
        if at == len(ids):
            return 0
        if len(near) < frames:
            return 1 + fewest(at + 1, near | {ids[at]})
        return 1 + min(fewest(at + 1, near - {out} | {ids[at]}) for out in near)

    assert run_of(flat(ids), machine(), frames, eviction="belady").counts["faults"] == fewest(
        0, frozenset()
    )


# The future


def places(future: object, region: int) -> list[int]:
    """When a region is touched, according to the future; NEVER is behind the last."""
    end = future.first[region + 1] - 1
    assert future.when[end] == NEVER
    return future.when[future.first[region] : end].tolist()


def test_with_one_slot_the_future_is_the_trace():
    blocks = [reads([0, PAGES]), reads([2]), reads([2 * PAGES, 1])]
    future = foresee(Given([Kernel(blocks), Kernel([reads([PAGES])])], [4 * PAGES]), 1)
    assert [places(future, region) for region in range(4)] == [[0, 2, 4], [1, 5], [3], []]


def test_with_many_slots_all_walk_in_step_and_take_the_next_block_when_theirs_is_done():
    a, b, c, d = (reads([r * PAGES] * n) for r, n in enumerate((1, 3, 2, 2)))
    future = foresee(Given([Kernel([a, b, c, [], d])], [4 * PAGES]), 2)
    # lanes: a c c d d / b b b
    assert [places(future, region) for region in range(4)] == [[0], [1, 3, 5], [2, 4], [6, 7]]


def test_a_wide_launch_has_fewer_lanes():
    trace = Given([Kernel([reads([0] * 2), reads([PAGES] * 2)], width=4)], [2 * PAGES])
    assert places(foresee(trace, 4), 0) == [0, 1]
    assert places(foresee(trace, 8), 0) == [0, 2]


def test_segments_make_no_difference_to_the_future():
    blocks = [reads([0] * 3), reads([PAGES]), reads([2 * PAGES] * 2)]
    whole, cut = (foresee(Given([Kernel(blocks, cuts=c)], [3 * PAGES]), 2) for c in ((), (1, 2)))
    assert whole.when.tolist() == cut.when.tolist()
