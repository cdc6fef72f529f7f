import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.analysis import belady_curve, belady_misses, lru_curve, lru_misses, shards_curve
from tidegate.errors import TidegateError

pytestmark = pytest.mark.oracle


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.integers(0, 15), min_size=1, max_size=150), st.lists(st.integers(0, 30), max_size=4)
)
def test_the_curve_is_lru_at_every_capacity(small, pages, cuts):
    curve = lru_curve(small(pages, cuts), "page")
    for capacity in range(1, 20):
        assert curve.misses_at(capacity) == lru_misses(pages, capacity)
    assert curve.misses[-1] == len(set(pages))
    assert curve.misses_at(0) == curve.touches == len(pages)


def test_the_curve_of_a_loop_is_a_cliff(small):
    curve = lru_curve(small(np.tile(np.arange(0, 320, 32), 5)), "region")  # ten regions, five times
    assert curve.misses.tolist() == [50] * 9 + [10]
    assert curve.sizes.tolist() == [(i + 1) << 21 for i in range(10)]
    assert curve.ratios[-1] == 0.2


@pytest.mark.parametrize("name", ["zipf", "uniform", "cyclic", "runs"])
def test_belady_is_never_above_lru(small, id_sequences, name):
    ids = id_sequences[name]
    trace = small(ids, cuts=[777, 20_000])
    capacities = [1, 2, 10, 100, 500, 699, 700, 1500]
    best = belady_curve(trace, reversed(capacities), "page")
    assert best.capacities.tolist() == capacities
    assert best.misses.tolist() == [belady_misses(ids, c) for c in capacities]
    assert (best.misses <= lru_curve(trace, "page").misses_at(capacities)).all()


def test_shards_at_rate_1_is_exact(small, id_sequences):
    trace = small(id_sequences["zipf"], cuts=[1000, 1])
    exact, sampled = lru_curve(trace, "page"), shards_curve(trace, rate=1, unit="page")
    assert exact.capacities.tolist() == sampled.capacities.tolist()
    assert exact.misses.tolist() == sampled.misses.tolist()


def test_shards_is_near_the_exact_curve(small, id_sequences):
    """About 200 of 2,000 zipf ids.

    Over 200 seeds the mean error was 0.005 to 0.114, median 0.025.
    """
    trace = small(id_sequences["zipf"])
    capacities = np.arange(1, 2000)
    exact = lru_curve(trace, "page")
    errors = []
    for seed in range(40):
        sampled = shards_curve(trace, 0.1, seed, unit="page")
        assert (np.diff(sampled.misses) <= 0).all()
        error = np.abs(exact.misses_at(capacities) - sampled.misses_at(capacities)) / exact.touches
        errors.append(error.mean())
    assert np.median(errors) < 0.04
    assert max(errors) < 0.15


def test_shards_is_the_same_for_the_same_seed(small, id_sequences):
    trace = small(id_sequences["uniform"])
    first, again, other = (shards_curve(trace, 0.1, seed, "page").misses for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("rate", [0, -0.1, 1.5, float("nan")])
def test_a_rate_that_is_no_share_is_refused(small, rate):
    with pytest.raises(TidegateError, match="sampling rate must be above 0 and at most 1"):
        shards_curve(small([0, 1]), rate)


def test_a_sample_of_nothing_is_refused(small):
    with pytest.raises(TidegateError, match="sampled nothing that is touched"):
        shards_curve(small([0, 1]), 1e-6, unit="page")


def test_capacities_must_hold_something(small):
    for capacities in ([], [0, 5]):
        with pytest.raises(TidegateError, match="capacities must be one or more, each at least 1"):
            belady_curve(small([0, 1]), capacities)
