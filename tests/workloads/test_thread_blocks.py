from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.jit import jit
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import lay_out
from tidegate.workloads.program import Space, largest_fit
from tidegate.workloads.thread_blocks import blocks, change, segments, step, use, use_sector


@jit
def _rising(log: Any, count: int, shape: Any) -> None:
    """Use a byte of each of b pages in block b, in falling order, twice."""
    for block in blocks(log, count):
        for _ in range(2):
            step(log)
            for i in range(block, 0, -1):
                use(log, 0, shape[0] * i, shape[0] * i + 1, False)


@jit
def _once(log: Any, count: int, shape: Any) -> None:
    for _ in blocks(log, count):
        use(log, 1, 10, 20, False)
        use(log, 0, 250, 262, False)  # two pages
        use_sector(log, 1, 70, True)
        use(log, 0, 255, 256, False)


def space(size: int) -> Space:
    geometry = Geometry(256, 1024)
    return Space(geometry, lay_out({"a": size, "b": 100}, geometry))


def test_a_page_is_touched_in_a_step_when_first_used_and_when_first_stored_to() -> None:
    (segment,) = segments(space(1000), _once, 2, ())
    np.testing.assert_array_equal(segment.starts, [0, 4, 8])
    np.testing.assert_array_equal(segment.page[:4], [4, 0, 1, 4])
    np.testing.assert_array_equal(segment.write[:4], [0, 0, 0, 1])
    np.testing.assert_array_equal(segment.bytes[:4], [10, 7, 6, 32])
    np.testing.assert_array_equal(segment.reference[:4], [1, 0, 0, 1])


@jit
def _changed(log: Any, count: int, shape: Any) -> None:
    """Change a page in two pieces in each of two steps, and store to one that was not loaded."""
    for _ in blocks(log, count):
        for _ in range(2):
            step(log)
            change(log, 0, 0, 4)
            change(log, 0, 4, 8)
            use(log, 1, 0, 4, True)
            use(log, 1, 4, 8, False)


def test_a_change_is_a_load_and_a_store_once_in_a_step() -> None:
    (segment,) = segments(space(1000), _changed, 1, ())
    np.testing.assert_array_equal(segment.page, 2 * [0, 0, 4])
    np.testing.assert_array_equal(segment.write, 2 * [0, 1, 1])
    # the second piece's load is behind the store
    np.testing.assert_array_equal(segment.bytes, 2 * [4, 12, 8])


def test_thread_blocks_come_whole_and_in_order_whatever_the_room() -> None:
    """Most blocks do not fit into the first room, and the last are longer than all of it."""
    count = 2000
    large = np.concatenate([s.page for s in segments(space(256 * 40_000), _rising, count, (256,))])
    np.testing.assert_array_equal(
        large, np.concatenate([np.tile(np.arange(b, 0, -1), 2) for b in range(1, count)])
    )
    lengths = np.concatenate(
        [np.diff(s.starts) for s in segments(space(256 * 40_000), _rising, count, (256,))]
    )
    # block 0 uses nothing and is left out
    np.testing.assert_array_equal(lengths, 2 * np.arange(1, count))


def test_one_thread_block_longer_than_the_first_room() -> None:
    @jit
    def whole(log: Any, count: int, shape: Any) -> None:
        for _ in blocks(log, count):
            use(log, 0, 0, shape[0], True)

    size = 256 * 300_000
    (segment,) = segments(space(size), whole, 1, (size,))
    np.testing.assert_array_equal(segment.page, np.arange(300_000))


def test_the_largest_number_that_fits() -> None:
    assert largest_fit(1000, lambda n: {"a": 3 * n, "b": 10}) == 330
    assert largest_fit(1, lambda n: {"a": 3 * n}) == 1
