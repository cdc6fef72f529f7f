"""No lost write and no wrong byte, whatever dies; a clear line for what is impossible.

TIDEGATE_SOAK=1 (``make soak``) runs each at full length.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from live.sequences import live_policies
from tidegate.errors import TidegateError
from tidegate.live import Arena

pytestmark = pytest.mark.live

SOAK = bool(os.environ.get("TIDEGATE_SOAK"))
SECONDS = "60" if SOAK else "1"
SMALL = {"near": "512KiB", "geometry": "16KiB/128KiB", "span": "1GiB"}
WRITERS = Path(__file__).parent / "writers.py"


def python(*arguments: str, timeout: float = 280) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=timeout
    )


@pytest.mark.slow
@pytest.mark.parametrize("policy", live_policies())
def test_no_write_is_lost(policy: str) -> None:
    done = python(str(WRITERS), policy, "tree", SECONDS, "0")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["evictions"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["lru", "tournament"])
def test_killed_pagers_lose_nothing(policy: str) -> None:
    done = python(str(WRITERS), policy, "fdp+rgp", "40" if SOAK else "3", "8")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["killed"] >= (200 if SOAK else 10)
    # some were hit twice, before their end was seen
    assert said["restarts"] >= 0.8 * said["killed"]


@pytest.mark.slow
@pytest.mark.parametrize("kills", ["0", "8"])
def test_large_regions_that_are_moved_by_threads_and_read_early_lose_nothing(kills: str) -> None:
    seconds = SECONDS if kills == "0" else "3"
    done = python(str(WRITERS), "lru", "region", seconds, kills, "0", "", "16KiB/512KiB")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["evictions"] > 0


def test_a_file_is_read_and_written_back(tmp_path: Path) -> None:
    path = tmp_path / "data.bin"
    data = np.arange(300_001, dtype="f8")  # its end is no page's end
    data.tofile(path)
    with Arena(**SMALL) as arena:
        a = arena.open(path, "f8", mode="r+")
        assert (a == data).all()
        a += 1
        arena.flush()
        assert (np.fromfile(path) == data + 1).all()
        a[-1] = -5
        assert not arena.open(path, "f8").flags.writeable
    assert np.fromfile(path)[-1] == -5
    assert path.stat().st_size == data.nbytes


def test_memory_comes_back_and_pinned_memory_stays() -> None:
    with Arena(**SMALL, eviction="lru") as arena:
        for _ in range(3):
            a = arena.zeros(1 << 20, "u1")
            assert not a.any()
            a[:] = 9
            del a
        b, c = arena.empty(128 << 10, "u1"), arena.empty(2 << 20, "u1")
        with arena.pin(b):
            b[:] = 3
            c[:] = 4
            assert arena.stats()["objects"][0]["name"]
        assert (b == 3).all()
        assert (c == 4).all()
        arena.advise(c, "far")
        arena.prefetch(b)
        assert (c == 4).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"near": "100KiB"}, "less than two regions"),
        ({"eviction": "belady"}, "sees every touch"),
        ({"eviction": "lrx"}, "did you mean"),
        ({"geometry": "1KiB/64KiB"}, "multiple of the system's"),
        ({"store": "/nowhere/at/all"}, "no folder"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, str], said: str) -> None:
    with pytest.raises(TidegateError, match=said):
        Arena(**(SMALL | options))


def test_an_existing_store_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(TidegateError, match="would overwrite"):
        Arena(store=tmp_path / "mine", **SMALL)
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_closed_arena_says_so() -> None:
    arena = Arena(**SMALL)
    arena.close()
    with pytest.raises(TidegateError, match="closed"):
        arena.empty(5)


def test_running_arenas_are_found() -> None:
    from live.test_residency import ours
    from tidegate.live.arena.running import running_arenas

    with Arena(**SMALL) as arena:
        arena.empty(1 << 20, "u1", name="mine")[:] = 1
        assert ours()["faults"] > 0
    assert os.getpid() not in [a["process"] for a in running_arenas()]


@pytest.mark.slow
@pytest.mark.parametrize("policy", live_policies())
def test_two_arrays_at_a_time_get_on(policy: str) -> None:
    """A processor needs both at once; a policy that evicts the latest must not do so for ever."""
    with Arena(**SMALL | {"eviction": policy, "near": "384KiB"}) as arena:
        a, b = arena.zeros(1 << 17), arena.zeros(1 << 17)  # 8 regions each, in 3 frames
        np.add(b, 1, out=b)
        begin = arena.stats()["faults"]
        np.add(a, b, out=a)
        assert arena.stats()["faults"] - begin < 1000  # an element at a time it would be 262,144
        assert (a == 1).all()
