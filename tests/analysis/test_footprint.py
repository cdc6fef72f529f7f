import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.analysis import Footprint

pytestmark = pytest.mark.oracle


def table_of(ids, cuts=()):
    footprint = Footprint(int(max(ids, default=0)) + 1)
    for chunk in np.split(np.asarray(ids, np.int32), np.cumsum(np.asarray(cuts, int))):
        footprint.update(chunk)
    return footprint.table(unit_bytes=10)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 3000), st.integers(1, 100), st.lists(st.integers(0, 500), max_size=5))
def test_every_point_counts_distinct_ids(n, ids, cuts):
    sequence = np.random.default_rng(n).integers(0, ids, n)
    table = table_of(sequence, cuts)
    assert len(table) <= 512
    assert table["touches"][-1] == n
    for touches, distinct, size in table.rows():
        assert distinct == len(np.unique(sequence[:touches]))
        assert size == 10 * distinct


@pytest.mark.parametrize("n", [511, 512, 513, 1024, 100_000])
def test_points_are_even_and_not_too_few(n):
    table = table_of(np.arange(n) % 97)
    assert min(n, 256) <= len(table) <= 512
    assert len(np.unique(np.diff(table["touches"].to_numpy())[:-1])) == 1
