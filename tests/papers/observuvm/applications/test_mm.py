from __future__ import annotations

import numpy as np

from workloads.read_traces import program, read


def test_mm_is_matmul_at_another_size() -> None:
    (mine,), (theirs,) = (read(program(name, bytes="60MB", wave=100)) for name in ("MM", "matmul"))
    for column in ("starts", "page", "write", "bytes", "reference"):
        np.testing.assert_array_equal(getattr(mine, column), getattr(theirs, column))
    assert (mine.width, mine.intensity) == (theirs.width, theirs.intensity)
