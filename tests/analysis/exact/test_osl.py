import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.analysis import belady_misses, lru_misses, vmin_misses
from tidegate.analysis.exact import leu_misses, osl_leases, osl_misses

pytestmark = pytest.mark.oracle

SEQUENCES = st.lists(st.integers(0, 6), min_size=1, max_size=80)


def leased(ids, leases):
    """Run a lease cache: misses, and the average size."""
    expires, misses, held = {}, 0, 0
    for now, id in enumerate(ids):
        misses += expires.get(id, -1) < now
        expires[id] = now + leases[id]
        held += sum(when > now for when in expires.values())  # after this touch, until the next
    return misses, held / len(ids)


@settings(deadline=None, max_examples=150)
@given(SEQUENCES, st.floats(0, 8))
def test_a_lease_cache_does_as_promised(ids, size):
    misses, average = leased(ids, osl_leases(ids, size))
    assert misses == osl_misses(ids, size)
    assert average <= size + 1e-9


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=14))
def test_no_leases_are_better_where_its_steps_end(ids):
    """Against every choice of leases: greedy is the best there is at the sizes it reaches."""
    blocks, n = sorted(set(ids)), len(ids)
    options = list(itertools.product(range(n), repeat=len(blocks)))
    results = [
        leased(ids, dict(zip(blocks, leases, strict=True)))
        for leases in options[:: max(1, len(options) // 400)]
    ]
    for size in np.linspace(0, 3, 7):
        own = leased(ids, osl_leases(ids, size))
        assert all(misses >= own[0] for misses, average in results if average <= own[1] + 1e-9)


@settings(deadline=None, max_examples=100)
@given(SEQUENCES, st.integers(0, 8))
def test_vmin_is_the_bound(ids, size):
    assert osl_misses(ids, size) >= vmin_misses(ids, size)


def test_a_loop_and_a_hot_block():
    """axayaz for ever: a is worth half a frame's hits; then x, y, z in turn, a frame each."""
    ids = [0, 1, 0, 2, 0, 3] * 50
    assert leased(ids, osl_leases(ids, 1))[0] == osl_misses(ids, 1) == 300 - 149
    assert osl_leases(ids, 1).tolist() == [2, 0, 0, 0]
    assert osl_misses(ids, [2, 3, 4]).tolist() == [300 - 149 - 49, 300 - 149 - 98, 4]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["zipf", "uniform", "cyclic", "runs"])
def test_sizes_come_out_as_asked(name):
    rng = np.random.default_rng(5)
    ids = {
        "zipf": rng.zipf(1.2, 6_000) % 500,
        "uniform": rng.integers(0, 300, 6_000),
        "cyclic": np.arange(6_000) % 300,
        "runs": np.repeat(rng.integers(0, 300, 600), 10),
    }[name]
    for size in (3, 40, 200):
        misses, average = leased(ids, osl_leases(ids, size))
        assert misses == osl_misses(ids, size)
        assert average <= size
        assert average > size - 2 or misses == len(np.unique(ids))
        assert vmin_misses(ids, size) <= min(misses, belady_misses(ids, size))
        assert leu_misses(ids, size) <= lru_misses(ids, size)
