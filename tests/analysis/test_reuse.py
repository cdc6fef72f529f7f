import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.analysis import ReuseDistances
from tidegate.analysis.reuse import FEWEST_SLOTS, histogram

pytestmark = pytest.mark.oracle


def distances_of(ids, bound, cuts=()):
    reuse = ReuseDistances(bound)
    for chunk in np.split(np.asarray(ids, np.int32), np.cumsum(np.asarray(cuts, int))):
        reuse.update(chunk)
    return reuse


def naive(ids):
    """Mattson's stack, as a list."""
    stack, distances = [], []
    for id in ids:
        if id in stack:
            distances.append(stack.index(id))
            stack.remove(id)
        stack.insert(0, id)
    return distances, len(stack)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.integers(0, 20), max_size=200))
def test_distances_are_those_of_a_stack(ids):
    reuse = distances_of(ids, bound=21)
    distances, distinct = naive(ids)
    assert reuse.counts.tolist() == np.bincount(np.array(distances, int), minlength=21).tolist()
    assert (reuse.cold, reuse.touches) == (distinct, len(ids))


def test_distances_are_those_of_a_stack_when_marks_are_moved_together():
    ids = np.random.default_rng(0).integers(0, 40, 2 * FEWEST_SLOTS + 100)
    distances, _ = naive(ids.tolist())
    assert (
        distances_of(ids, bound=40).counts.tolist() == np.bincount(distances, minlength=40).tolist()
    )


@pytest.mark.parametrize("bound", [1, 2, 64, 65, 1023, 1024, 5000, 70_000])
def test_a_loop_has_one_distance(bound):
    # the slots are used up more than once, and the tree has up to 3 levels
    loops = max(3, 6 * FEWEST_SLOTS // bound)
    reuse = distances_of(np.tile(np.arange(bound), loops), bound)
    assert reuse.cold == bound
    assert reuse.counts[bound - 1] == reuse.counts.sum() == (loops - 1) * bound


def test_a_repeat_has_distance_0():
    assert distances_of([7, 7, 7, 7], bound=8).counts.tolist() == [3] + [0] * 7


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.integers(0, 900), max_size=40),
    st.sampled_from(["zipf", "uniform", "cyclic", "runs"]),
)
def test_chunks_do_not_matter(id_sequences, cuts, name):
    ids = id_sequences[name][:20_000]
    whole, pieces = distances_of(ids, 2000), distances_of(ids, 2000, cuts)
    assert np.array_equal(whole.counts, pieces.counts)
    assert (whole.cold, whole.touches) == (pieces.cold, pieces.touches)


def test_memory_depends_on_the_ids_only():
    reuse = distances_of([0, 1], bound=1000)
    before = {name: a.nbytes for name, a in vars(reuse).items() if isinstance(a, np.ndarray)}
    reuse.update(np.random.default_rng(0).integers(0, 1000, 200_000).astype(np.int32))
    assert before == {
        name: a.nbytes for name, a in vars(reuse).items() if isinstance(a, np.ndarray)
    }


def test_ids_may_be_read_only():
    ids = np.array([3, 1, 3], np.int32)
    ids.flags.writeable = False
    reuse = ReuseDistances(4)
    reuse.update(ids)
    assert reuse.counts.tolist() == [0, 1, 0, 0]


def test_histogram_buckets_double():
    reuse = distances_of([0, 0, 1, 0, 2, 3, 4, 0, 1], bound=5)  # distances 0, 1, 3, 4
    table = histogram(reuse, unit_bytes=100)
    assert table.select("at_least", "below", "bytes", "touches").rows() == [
        (0, 1, 0, 1),
        (1, 2, 100, 1),
        (2, 4, 200, 1),
        (4, 8, 400, 1),
        (None, None, None, 5),
    ]
    assert table["share"].sum() == pytest.approx(1)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=100))
def test_histogram_leaves_no_touch_out(ids):
    reuse = distances_of(ids, bound=41)
    table = histogram(reuse, unit_bytes=1)
    assert table["touches"].sum() == len(ids)
    for low, high, touches in table.select("at_least", "below", "touches").rows()[:-1]:
        assert touches == reuse.counts[low:high].sum()
