"""The rankings that MEMSYS'19 argues against, compared with a plain cache."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.analysis import belady_misses, lru_misses
from tidegate.analysis.exact import leu_misses, osl_leases
from tidegate.analysis.exact.intervals import TouchSequence
from tidegate.analysis.exact.osl import lease_misses, mean_interval_misses, mean_intervals

pytestmark = pytest.mark.oracle


def plain_misses(ids: list[int], worth: dict[int, float], capacity: int) -> int:
    held: dict[int, int] = {}  # when each was touched
    misses = 0
    for now, block in enumerate(ids):
        if block not in held:
            misses += 1
            if len(held) == capacity:
                del held[min(held, key=lambda b: (worth[b], held[b]))]
        held[block] = now
    return misses


@given(st.lists(st.integers(0, 9), min_size=1, max_size=80), st.integers(1, 8))
def test_both_equal_a_plain_cache(ids: list[int], capacity: int) -> None:
    touches = TouchSequence.from_ids(ids)
    means = dict(zip(touches.ids.tolist(), mean_intervals(touches)[touches.ids], strict=True))
    expected = plain_misses(touches.ids.tolist(), {b: -m for b, m in means.items()}, capacity)
    assert mean_interval_misses(ids, capacity) == expected
    leases = dict(enumerate(osl_leases(ids, capacity).tolist()))
    assert lease_misses(ids, capacity) == plain_misses(touches.ids.tolist(), leases, capacity)
    assert belady_misses(ids, capacity) <= min(expected, lease_misses(ids, capacity))


def test_mean_intervals() -> None:
    assert mean_intervals(TouchSequence.from_ids([0, 1, 0, 2, 0])).tolist() == [2, np.inf, np.inf]


def test_in_a_loop_means_are_equal_and_rank_nothing() -> None:
    """All blocks have the same mean: it is LRU, where LEU is MRU."""
    ids = np.tile(np.arange(20), 30)
    assert mean_interval_misses(ids, 15) == lru_misses(ids, 15) == 600
    assert leu_misses(ids, 15) < 250
