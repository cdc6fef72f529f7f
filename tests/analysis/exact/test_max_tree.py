"""The root of a tree of maxima is the highest leaf."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.analysis.exact.leu.priorities import ROOT, highest_leaf, max_tree, set_leaf
from tidegate.compiled.jit import jit

pytestmark = pytest.mark.oracle


@jit
def _after(bounds, first, leaves_set, values, roots, found):
    for i in range(len(leaves_set)):
        set_leaf(bounds, first + leaves_set[i], values[i])
        roots[i], found[i] = bounds[ROOT], highest_leaf(bounds, first) - first


@given(
    leaves=st.sampled_from([1, 2, 8, 9, 64, 65, 600]),
    puts=st.lists(st.tuples(st.integers(0, 599), st.integers(0, 9)), max_size=80),
)
def test_root_is_the_highest_and_a_leaf_has_it(leaves, puts):
    bounds, first = max_tree(leaves)
    assert bounds.ctypes.data % 64 == 0
    leaves_set, values = (np.array([p[i] for p in puts], np.int64) for i in (0, 1))
    leaves_set %= leaves
    roots, found = np.zeros(len(puts)), np.zeros(len(puts), np.int64)
    _after(bounds, first, leaves_set, values.astype(np.float64), roots, found)
    kept = np.zeros(leaves)
    for leaf_set, value, root, leaf in zip(leaves_set, values, roots, found, strict=True):
        kept[leaf_set] = value
        assert root == kept.max()
        if root:
            assert kept[leaf] == root
