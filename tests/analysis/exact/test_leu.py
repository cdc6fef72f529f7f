"""LEU is exact, and it is a stack algorithm (claims L1 to L4)."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.analysis import belady_misses
from tidegate.analysis.exact import TouchSequence, leu_curve, leu_misses
from tidegate.analysis.exact.leu.rational import distributions, exact_leu
from tidegate.errors import TidegateError
from tidegate.policies.eviction.leu.phases import LEASE, LEFT, START, WITHIN, phases_of

pytestmark = pytest.mark.oracle

F = Fraction


def drawn(seed, touches, ids):
    """Long sequences, which hypothesis alone rarely tries; some ids are hot."""
    return (np.random.default_rng(seed).zipf(1.3, touches) % ids).tolist()


SEQUENCES = st.lists(st.integers(0, 7), min_size=1, max_size=40) | st.builds(
    drawn, st.integers(0, 9999), st.integers(50, 160), st.integers(2, 20)
)


@st.composite
def with_references(draw):
    ids = draw(SEQUENCES)
    seed, most = draw(st.integers(0, 9999)), draw(st.integers(1, 5))
    return ids, draw(
        st.sampled_from((None, np.random.default_rng(seed).integers(0, most, len(ids)).tolist()))
    )


# The paper's examples


def priorities(period, now, references=None):
    """Every block's priority and best lease at time ``now`` (from 1) of a period that is repeated
    for ever.
    """
    owners = references or period
    known = distributions(period, owners, endless=True)
    last = {block: i for i, block in enumerate(period[:now], start=1)}
    return {block: known[owners[i - 1]].priority(now - i) for block, i in last.items()}


def test_figure_3():
    known = distributions("axayaz", endless=True)
    assert (
        known["a"].share(2)
        == known["x"].share(6)
        == known["y"].share(6)
        == known["z"].share(6)
        == 1
    )
    assert priorities("axayaz", 6) == {
        "a": (1, 2),
        "x": (F(1, 2), 6),
        "y": (F(1, 4), 6),
        "z": (F(1, 6), 6),
    }


def test_one_distribution_for_x_y_z():
    references = ["r1", "r2"] * 3
    known = distributions("axayaz", references, endless=True)
    assert known["r2"].counts == {6: 3}
    assert known["r2"].accesses == 3
    assert priorities("axayaz", 6, references) == priorities("axayaz", 6)


def test_half_of_the_reuses_of_aabb_are_after_1_and_half_after_3():
    assert distributions("aabb", endless=True)["a"].counts == {1: 1, 3: 1}


def test_aaxyz_ranks_a_first_and_then_as_mru_does():
    """The paper prints 1/2, 1/3, 1/4 for x, y, z at t = 5; by its own equation 2, and Figure 3's
    TESLA, which is 0 for the block just touched, they are 1/3, 1/4, 1/5. The printed ones have
    TESLA one larger. The order is the same.
    """
    found = priorities("aaxyz", 5)
    assert found == {"a": (1, 4), "x": (F(1, 3), 5), "y": (F(1, 4), 5), "z": (F(1, 5), 5)}
    known = distributions("aaxyz", endless=True)
    assert [known[b].priority(5 - i + 1)[0] for b, i in (("x", 3), ("y", 4), ("z", 5))] == [
        F(1, 2),
        F(1, 3),
        F(1, 4),
    ]


def test_where_all_intervals_have_passed_nothing_is_expected():
    known = distributions("aaxyz", endless=True)["a"]
    assert known.hit_ratio(4, 9) == 0
    assert known.priority(4) == (0, None)


def test_equation_1_is_conditional():
    known = distributions("aaxyz", endless=True)["a"]
    assert [known.hit_ratio(0, lease) for lease in (1, 3, 4)] == [F(1, 2), F(1, 2), 1]
    assert [known.hit_ratio(2, lease) for lease in (3, 4)] == [0, 1]


# The compiled one


@settings(deadline=None, max_examples=200)
@given(with_references(), st.booleans())
def test_phases_are_the_exact_priorities(given_touches, endless):
    ids, references = given_touches
    known = distributions(ids, references, endless)
    phases = phases_of(TouchSequence.from_ids(ids, references).histograms(endless))
    for owner, distribution in known.items():
        rows = phases.rows[phases.first[owner] : phases.last[owner] + 1]
        assert rows[0, START] == 0
        assert (np.diff(rows[:, START]) > 0).all()
        for tesla in range(len(ids) + 2):
            row = rows[np.searchsorted(rows[:, START], tesla, side="right") - 1]
            priority, lease = distribution.priority(tesla)
            assert F(int(row[WITHIN]), int(row[LEFT]) * int(row[LEASE] - tesla)) == priority
            assert lease is None or lease == row[LEASE]


def test_there_are_no_more_phases_than_promised():
    touches = TouchSequence.from_ids(np.random.default_rng(0).integers(0, 50, 20_000))
    histograms = touches.histograms()
    phases = phases_of(histograms)
    assert (phases.last - phases.first + 1 <= 2 * np.diff(histograms.first) + 1).all()


@settings(deadline=None, max_examples=200)
@given(with_references(), st.integers(1, 22))
def test_compiled_equals_exact(given_touches, capacity):
    ids, references = given_touches
    assert leu_misses(ids, capacity, references) == exact_leu(ids, capacity, references).misses


@pytest.mark.slow
@settings(deadline=None, max_examples=80)
@given(with_references(), st.integers(1, 12))
def test_inclusion_at_every_step(given_touches, capacity):
    ids, references = given_touches
    smaller, larger = (exact_leu(ids, c, references) for c in (capacity, capacity + 1))
    assert all(a <= b for a, b in zip(smaller.resident, larger.resident, strict=True))
    assert smaller.misses >= larger.misses


@settings(deadline=None, max_examples=200)
@given(with_references())
def test_the_curve_of_one_pass_is_every_size_simulated(given_touches):
    ids, references = given_touches
    curve = leu_curve(ids, references)
    assert curve.misses.tolist() == [leu_misses(ids, c, references) for c in curve.capacities]
    assert curve.misses[-1] == len(set(ids))
    assert (np.diff(curve.misses) <= 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_long_sequences_too(seed):
    """Where lines cross often and phases are many."""
    rng = np.random.default_rng(seed)
    ids = np.concatenate(
        [rng.zipf(1.2, 6000) % 400, np.tile(np.arange(300, 700), 8), rng.integers(0, 500, 4000)]
    )
    references = rng.integers(0, 6, len(ids))
    for owners in (None, references):
        curve = leu_curve(ids, owners)
        sizes = [1, 2, 7, 50, 199, 350, 600]
        assert curve.misses_at(sizes).tolist() == [leu_misses(ids, c, owners) for c in sizes]
        assert all(curve.misses_at(c) >= belady_misses(ids, c) for c in sizes)


def test_a_loop_keeps_all_frames_but_one_as_belady_does():
    ids = np.tile(np.arange(100), 30)
    assert leu_misses(ids, 60) == belady_misses(ids, 60)


def test_large_counts_do_not_overflow():
    """N, K and deadlines of millions: their product needs more than 64 bits."""
    ids = np.zeros(3_000_000, np.int32)
    ids[::1000] = np.arange(3_000) % 3 + 1
    curve = leu_curve(ids)
    assert curve.misses_at([1, 2, 3, 4]).tolist() == [leu_misses(ids, c) for c in (1, 2, 3, 4)]
    assert curve.misses_at(4) == 4


def test_bad_input_is_refused():
    with pytest.raises(TidegateError, match="references must be one per touch, 3, got 2"):
        leu_misses([1, 2, 3], 2, [0, 0])
    with pytest.raises(TidegateError, match="capacity must be at least 1, got 0"):
        leu_misses([1, 2, 3], 0)
    with pytest.raises(TidegateError, match="ids must have at least one touch, got none"):
        leu_curve([])
