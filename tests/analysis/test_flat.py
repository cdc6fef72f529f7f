from collections import OrderedDict, deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.analysis import (
    arc_misses,
    belady_misses,
    clock_misses,
    fifo_misses,
    lru_misses,
    s3_fifo_misses,
    two_q_misses,
)

pytestmark = pytest.mark.oracle

ALL = [
    lru_misses,
    fifo_misses,
    clock_misses,
    belady_misses,
    arc_misses,
    two_q_misses,
    s3_fifo_misses,
]


def drawn(seed, touches, ids):
    """Long sequences, which hypothesis alone rarely tries."""
    return np.random.default_rng(seed).integers(0, ids, touches).tolist()


short = st.lists(st.integers(0, 12), max_size=20)
long = st.builds(drawn, st.integers(0, 999), st.integers(50, 300), st.integers(2, 40))
ids_and_capacity = (short | long, st.integers(1, 30))


def naive_lru(ids, capacity):
    cache, misses = OrderedDict(), 0
    for id in ids:
        misses += id not in cache
        cache[id] = True
        cache.move_to_end(id)
        if len(cache) > capacity:
            cache.popitem(last=False)
    return misses


def naive_fifo(ids, capacity):
    queue, misses = deque(), 0
    for id in ids:
        if id not in queue:
            misses += 1
            if len(queue) == capacity:
                queue.popleft()
            queue.append(id)
    return misses


def naive_clock(ids, capacity):
    """As libCacheSim writes it: a FIFO list that takes referenced ids back in at the young end."""
    queue, bit, misses = deque(), {}, 0
    for id in ids:
        if id in bit:
            bit[id] = 1
            continue
        misses += 1
        if len(queue) == capacity:
            while bit[queue[0]]:
                bit[queue[0]] = 0
                queue.rotate(-1)
            del bit[queue.popleft()]
        queue.append(id)
        bit[id] = 0
    return misses


def naive_belady(ids, capacity):
    cache, misses = set(), 0
    for i, id in enumerate(ids):
        if id not in cache:
            misses += 1
            if len(cache) == capacity:
                rest = ids[i + 1 :]
                cache.remove(
                    max(cache, key=lambda other: rest.index(other) if other in rest else len(ids))
                )
            cache.add(id)
    return misses


@pytest.mark.parametrize(
    ("compiled", "naive"),
    [
        (lru_misses, naive_lru),
        (fifo_misses, naive_fifo),
        (clock_misses, naive_clock),
        (belady_misses, naive_belady),
    ],
)
@settings(deadline=None, max_examples=150)
@given(*ids_and_capacity)
def test_compiled_equals_naive(compiled, naive, ids, capacity):
    assert compiled(ids, capacity) == naive(ids, capacity)


@pytest.mark.parametrize("capacity", [1, 2, 63, 64, 99])
@pytest.mark.parametrize("misses_of", [lru_misses, fifo_misses, clock_misses])
def test_a_loop_larger_than_memory_always_misses(misses_of, capacity):
    assert misses_of(np.tile(np.arange(100), 7), capacity) == 700


@pytest.mark.parametrize(
    ("n", "capacity", "loops"), [(10, 4, 1), (10, 4, 30), (100, 99, 50), (1000, 2, 9), (3, 1, 8)]
)
def test_belady_on_a_loop_keeps_all_frames_but_one(n, capacity, loops):
    # After the first loop, of every N - 1 touches in a row C - 1 hit: one frame takes the misses.
    touches = n * loops
    later = touches - n
    hits = sum(1 for i in range(later) if i % (n - 1) < capacity - 1)
    assert belady_misses(np.tile(np.arange(n), loops), capacity) == touches - hits


@pytest.mark.slow
@pytest.mark.parametrize("misses_of", ALL)
def test_what_fits_misses_once(misses_of):
    ids = np.random.default_rng(0).integers(0, 50, 5000)
    assert misses_of(ids, 50) == misses_of(ids, 10**9) == 50
    assert misses_of([], 3) == 0
    assert misses_of([4] * 9, 1) == 1


@settings(deadline=None, max_examples=150)
@given(*ids_and_capacity)
def test_nothing_beats_belady_and_more_memory_never_hurts_it(ids, capacity):
    best = belady_misses(ids, capacity)
    assert best <= min(misses_of(ids, capacity) for misses_of in ALL)
    assert belady_misses(ids, capacity + 1) <= best


def test_arrays_are_left_as_they_were():
    ids = np.array([3, 1, 3, 2], np.int32)
    for misses_of in ALL:
        misses_of(ids, 2)
    assert ids.tolist() == [3, 1, 3, 2]
