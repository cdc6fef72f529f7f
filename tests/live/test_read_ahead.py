"""The mover reads the next far region of a stream early, up or down."""

from __future__ import annotations

from collections import defaultdict

import pytest

from tidegate.live.transfer.mover import SKIPPED, LiveMover
from tidegate.live.transfer.store import RegionReadAhead


@pytest.mark.parametrize(
    ("loaded", "near", "read_early"),
    [
        ([4, 5, 6], [], [6, 7]),
        ([6, 5, 4], [], [4, 3]),
        ([4, 6, 8], [5, 7, 9], [8, 10]),  # near regions are passed over
        ([8, 6, 4], [7, 5, 3], [4, 2]),
        ([4, 4 + SKIPPED + 2], [*range(5, 4 + SKIPPED + 2)], []),  # too far away
        ([4, 7], [5], []),  # 6 is far: no stream
        ([1, 0], [], [-1]),  # which is no object's, and is not read
    ],
)
def test_the_region_behind_is_read_early(
    loaded: list[int], near: list[int], read_early: list[int]
) -> None:
    mover, asked = object.__new__(LiveMover), []
    mover.present = dict.fromkeys(near, 1)
    mover.backing = defaultdict(lambda: (None, 0))  # type: ignore[assignment,arg-type]
    mover._region_reads = RegionReadAhead(4096, 1)
    mover._read_region_early = lambda region, _: asked.append(region)  # type: ignore[method-assign]
    for region in loaded:
        mover.present[region] = 1
        mover._note_stream(region)
    assert asked == read_early
