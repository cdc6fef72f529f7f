import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.analysis import belady_misses, vmin_misses

pytestmark = pytest.mark.oracle

SEQUENCES = st.lists(st.integers(0, 9), min_size=1, max_size=120)


@settings(deadline=None, max_examples=150)
@given(SEQUENCES)
def test_it_is_what_keeping_by_a_threshold_gives(ids):
    """At the sizes where all intervals up to some τ are taken and none above."""
    n = len(ids)
    after = [next((j - i for j in range(i + 1, n) if ids[j] == ids[i]), None) for i in range(n)]
    for tau in {r for r in after if r}:
        kept = [r for r in after if r and r <= tau]
        assert vmin_misses(ids, sum(kept) / n + 1e-9) == n - len(kept)


@settings(deadline=None, max_examples=150)
@given(SEQUENCES, st.integers(1, 12))
def test_it_is_below_belady(ids, capacity):
    assert len(set(ids)) <= vmin_misses(ids, capacity) <= belady_misses(ids, capacity)


def test_a_loop_costs_its_length_per_hit():
    ids = np.tile(np.arange(10), 10)
    assert vmin_misses(ids, [0, 5, 9, 10]).tolist() == [100, 50, 10, 10]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=10), st.integers(0, 6))
def test_no_choice_of_stays_is_better(ids, halves):
    """Simulate every choice of blocks that stay after each touch: misses, and frames
    held at every moment.
    """
    size = halves / 2
    reusable = [i for i, id in enumerate(ids) if id in ids[i + 1 :]]
    fewest = len(ids)
    for choice in itertools.product((False, True), repeat=len(reusable)):
        stays = {i for i, kept in zip(reusable, choice, strict=True) if kept}
        held, misses, frames = set(), 0, 0
        for now, id in enumerate(ids):
            misses += id not in held
            held.discard(id)
            if now in stays:
                held.add(id)
            frames += len(held)
        if frames <= size * len(ids):
            fewest = min(fewest, misses)
    assert vmin_misses(ids, size) == fewest
