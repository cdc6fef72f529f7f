"""Copies of sampled pages: whatever happens meanwhile, pages are restored as they were."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from live.test_failures import OPEN, run, with_fault
from live.test_reliable import SMALL
from tidegate.live import Arena
from tidegate.live.transfer.page_state import SampledPages

pytestmark = pytest.mark.live

PAGE = 16 * 1024


@pytest.fixture
def files() -> Iterator[tuple[int, int]]:
    """Near memory of eight pages, each full of its number plus one; and a file for copies."""
    memory = os.memfd_create("near")
    os.pwrite(memory, b"".join(bytes([i + 1]) * PAGE for i in range(8)), 0)
    copies = SampledPages.create(PAGE, 3)
    yield memory, copies
    os.close(memory)
    os.close(copies)


def test_copies_outlive_the_pager(files: tuple[int, int]) -> None:
    memory, fd = files
    first = SampledPages(fd, PAGE, 3)
    for number in (5, 2, 7):
        first.put(number, memory)
    first.remove(2)
    second = SampledPages(fd, PAGE, 3)  # another process would see the same
    assert sorted(second.pages()) == [5, 7]
    assert bytes(second.get(5)[0]) == b"\6" * PAGE
    second.put(0, memory)
    assert {n: bytes(second.get(n)[0][:1]) for n in second.pages()} == {
        0: b"\1",
        5: b"\6",
        7: b"\10",
    }
    second.remove(3)  # was never there
    assert sorted(second.pages()) == [0, 5, 7]


@pytest.fixture
def observed(tmp_path: Path) -> Iterator[tuple[Arena, np.ndarray, Path]]:
    """A written file of three regions in three frames and another array; some pages are sampled."""
    path = tmp_path / "data"
    np.zeros(3 << 14, "u8").tofile(path)  # three regions of eight pages
    with Arena(
        **SMALL
        | {
            "near": "384KiB",
            "eviction": "lru",
            "prefetch": "none",
            "observe_share": 1,
            "samples": 4,
        }
    ) as arena:  # type: ignore[arg-type]
        a = arena.open(path, "u8", mode="r+")
        a[:] = 1
        other = arena.empty(1 << 17, "u1")
        other[:] = 1
        a[1 << 14 :] = 2
        assert arena.stats()["observations"] > 0
        yield arena, a, path


def test_a_flush_writes_copies_of_dirty_pages(observed: tuple[Arena, np.ndarray, Path]) -> None:
    arena, _, path = observed
    arena.flush()
    there = np.fromfile(path, "u8")
    assert (there[: 1 << 14] == 1).all()
    assert (there[1 << 14 :] == 2).all()


def test_pinned_memory_is_whole(observed: tuple[Arena, np.ndarray, Path]) -> None:
    arena, a, _ = observed
    with arena.pin(a[1 << 14 : 2 << 14]):
        assert (a[1 << 14 :] == 2).all()
    assert (a[: 1 << 14] == 1).all()


def test_a_pager_that_dies_while_an_array_goes_leaves_no_trace_of_it() -> None:
    code = f"""{OPEN}
for value in range(6):
    a = arena.empty(1 << 20, "u1")
    assert not a.any(), a.max()
    a[:] = value + 1
    del a
print(arena.stats()["restarts"])
"""
    done = run(code, env=with_fault("die-in-drop"))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 3


@pytest.mark.slow
def test_there_is_room_when_every_counter_is_in_use() -> None:
    """A restored page keeps its slot until the turn ends; others may be sampled in that turn."""
    with Arena(
        **SMALL
        | {
            "near": "8MiB",
            "eviction": "lru",
            "prefetch": "none",
            "observe_share": 1,
            "samples": 7,
            "observed": 64,
        }
    ) as arena:  # type: ignore[arg-type]
        a = arena.empty(9 << 20, "u1")
        for value in range(1, 4):
            a[:] = value
            for _ in range(3):
                assert (a[: 7 << 20] == value).all()
        assert arena.stats()["notifications"] > 100


@pytest.mark.slow
def test_unused_samples_are_not_copied_and_a_use_reads_them(tmp_path: Path) -> None:
    """It shows in bytes read beside those that migrate. Dirty pages are copied all the same."""
    path = tmp_path / "data"
    data = np.arange(64 << 14, dtype="u8")  # 64 regions of eight pages
    data.tofile(path)
    region = 1 << 14
    with Arena(
        **SMALL
        | {"near": "1MiB", "eviction": "lru", "prefetch": "none", "observe_share": 1, "samples": 4}
    ) as arena:  # type: ignore[arg-type]
        a = arena.open(path, "u8", mode="r+")

        def read_beside() -> int:
            stats = arena.stats()
            return int(stats["bytes_in"]) - PAGE * int(stats["pages_in"])

        for _ in range(2):
            assert (a == data).all()
        assert arena.stats()["observations"] > 64
        assert (arena.stats()["notifications"], read_beside()) == (0, 0)
        # all of it is near, and some of it is sampled
        assert (a[-8 * region :] == data[-8 * region :]).all()
        assert arena.stats()["notifications"] > 0
        assert (first := read_beside()) > 0
        # one was used: from here on they are copied
        assert (a[-8 * region :] == data[-8 * region :]).all()
        assert read_beside() == first
        for _ in range(2):
            a += 1
        assert (a[-8 * region :] == data[-8 * region :] + 2).all()
        assert read_beside() == first
    assert (np.fromfile(path, "u8") == data + 2).all()
