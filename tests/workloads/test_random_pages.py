from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.workloads.random_pages import Zipf, _alias_table


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60).filter(lambda w: sum(w) > 1e-3))
def test_alias_table_gives_back_the_weights(weights: list[float]) -> None:
    shares = np.array(weights) / sum(weights)
    n = len(shares)
    keep, other = _alias_table(shares * n)
    drawn = np.zeros(n)
    for i in range(n):
        drawn[i] += min(keep[i], 1) / n
        drawn[other[i]] += max(1 - keep[i], 0) / n
    np.testing.assert_allclose(drawn, shares, atol=1e-9)


def test_one_page_is_always_drawn() -> None:
    assert not Zipf(1, 1.0, seed=3).draw(np.random.default_rng(0), 1000).any()


def test_a_steep_law_draws_one_page() -> None:
    law = Zipf(1000, 500.0, seed=3)
    assert set(law.draw(np.random.default_rng(0), 1000).tolist()) == {int(np.argmax(law.shares))}


@pytest.mark.parametrize("pages", [2, 7, 163_840])
def test_draws_are_pages(pages: int) -> None:
    drawn = Zipf(pages, 0.9, seed=0).draw(np.random.default_rng(0), 100_000)
    assert drawn.dtype == np.int32
    assert drawn.min() >= 0
    assert drawn.max() < pages
