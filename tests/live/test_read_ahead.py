"""Streams are read early, and walks that write are let through."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tidegate.live.transfer.mover import LiveMover
from tidegate.live.transfer.store import REGIONS_AHEAD, Backing, RegionReadAhead
from tidegate.live.transfer.streams import SKIPPED, Streams


@pytest.mark.parametrize(
    ("loaded", "near", "read_early"),
    [
        ([4, 5], [], [6, 7, 8]),
        ([4, 5, 6], [], [6, 7, 8, 7, 8, 9]),
        ([6, 5], [], [4, 3, 2]),
        ([4, 6], [5, 7, 9], [8, 10, 11]),  # near regions are passed over
        ([8, 6], [7, 5, 3], [4, 2, 1]),
        ([4, 5], [7, *range(9, 9 + SKIPPED + 1)], [6, 8]),  # behind them is another stream
        ([4, 4 + SKIPPED + 2], [*range(5, 4 + SKIPPED + 2)], []),  # too far away
        ([4, 7], [5], []),  # 6 is far: no stream
        ([1, 0], [], [-1, -2, -3]),  # which are no object's, and are not read
    ],
)
def test_the_regions_behind_are_read_early(
    loaded: list[int], near: list[int], read_early: list[int]
) -> None:
    asked: list[int] = []
    present = dict.fromkeys(near, 1)
    streams = Streams(RegionReadAhead(4096, 1), present, lambda region, _: asked.append(region))
    for region in loaded:
        present[region] = 1
        streams.note_loaded(region)
    assert asked == read_early


def test_what_is_read_early_is_used_once_and_buffers_come_back(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"".join(bytes([i]) * 8192 for i in range(12)))
    fd = os.open(path, os.O_RDONLY)
    backing = Backing(fd, fd, 0, 12 * 8192, False, False)
    reads = RegionReadAhead(4096, 2)
    for first in range(0, 12, REGIONS_AHEAD):
        regions = range(first, first + REGIONS_AHEAD)
        reads.expect(regions)
        for region in regions:
            reads.read(region, 2, backing, region * 8192)
        for region in regions:
            early = reads.take_over(region)
            assert early is not None
            found = early.take(0, 2)
            assert found is not None
            assert bytes(found[0]) == bytes([region]) * 8192
            assert reads.take_over(region) is None
    reads.read(0, 2, backing, 0)
    reads.expect([5])  # the stream went elsewhere
    assert reads.take_over(0) is None
    os.close(fd)


@pytest.mark.parametrize(
    ("dirty", "present", "page", "let_through"),
    [
        (0b0, 0xFF, 0, 1),
        (0b1, 0xFF, 1, 1),  # one page is no walk
        (0b11, 0xFF, 2, 2),
        (0b1111, 0xFF, 4, 4),
        (0b1111, 0b101111, 4, 1),  # only what is present
        (0b100000001111, 0xFFF, 4, 4),
        (0b10001111, 0xFFF, 4, 3),  # only what is clean
        (0b11011, 0xFFF, 5, 2),
        (0b1, 0xFF, 7, 1),
    ],
)
def test_a_walk_that_writes_is_let_through_by_doubling_runs(
    dirty: int, present: int, page: int, let_through: int
) -> None:
    mover = object.__new__(LiveMover)
    mover._ppr, mover.present = 12, {3: present}
    mover._flags = SimpleNamespace(dirty=lambda first, n: dirty)  # type: ignore[assignment]
    assert mover._likely_written(3, page) == let_through
