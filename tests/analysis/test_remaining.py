from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.analysis.remaining import remaining_distances, shares
from tidegate.errors import TidegateError

pytestmark = pytest.mark.oracle


def plain(ids: list[int], capacity: int) -> list[int]:
    """CLOCK with a list, and every id touched from an eviction to the return put in a set."""
    frames: list[int] = []
    referenced: set[int] = set()
    left: dict[int, int] = {}
    hand, found = 0, []
    for now, id in enumerate(ids):
        if id in frames:
            referenced.add(id)
            continue
        if id in left:
            found.append(len(set(ids[left.pop(id) : now])))
        if len(frames) < capacity:
            frames.append(id)
            continue
        while frames[hand] in referenced:
            referenced.remove(frames[hand])
            hand = (hand + 1) % capacity
        left[frames[hand]] = now
        frames[hand] = id
        hand = (hand + 1) % capacity
    return found


@settings(deadline=None)
@given(st.lists(st.integers(0, 12), max_size=120), st.integers(1, 8))
def test_equals_sets(ids: list[int], capacity: int) -> None:
    assert remaining_distances(ids, capacity).tolist() == plain(ids, capacity)


def test_a_loop_comes_back_after_what_does_not_fit() -> None:
    loop = np.tile(np.arange(100, dtype=np.int32), 4)
    # evicted when the id 30 places on came in; that one and 69 others are touched before it is back
    assert (remaining_distances(loop, 30) == 70).all()
    assert len(remaining_distances(loop, 30)) == 300
    assert len(remaining_distances(loop, 100)) == 0


def test_shares_add_up() -> None:
    assert shares(np.array([3, 4, 11, 12], np.int32), near=4, middle=8) == (0.25, 0.5, 0.25)
    assert shares(np.array([], np.int32), near=4, middle=8) == (0, 0, 0)


def test_no_capacity_is_refused() -> None:
    with pytest.raises(TidegateError, match="capacity"):
        remaining_distances([1, 2], 0)
