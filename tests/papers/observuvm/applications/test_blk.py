from __future__ import annotations

import numpy as np

from workloads.read_traces import program, read


def test_blk_is_blackscholes_at_another_size_and_number_of_iterations() -> None:
    mine, theirs = (
        read(program("BLK", bytes="60MB")),
        read(program("blackscholes", bytes="60MB", iterations=16)),
    )
    assert len(mine) == 16
    for one, two in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(one.page, two.page)
        np.testing.assert_array_equal(one.write, two.write)


def test_touches_in_closed_form() -> None:
    trace = program("BLK", bytes="60MB", iterations=3)
    assert sum(len(x.page) for x in read(trace)) == 3 * sum(o.pages for o in trace.objects)
