"""Changes reach their files, however the array or the arena ends; calls survive a Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidegate
from tidegate.errors import TidegateError

pytestmark = pytest.mark.live

NUMBERS = 1_000_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    np.zeros(NUMBERS).tofile(tmp_path / "numbers.bin")
    return tmp_path / "numbers.bin"


def all_are(file: Path, value: float) -> bool:
    return bool((np.fromfile(file) == value).all())


def fill(arena: tidegate.Arena, file: Path, value: float) -> None:
    arena.open(file, "f8", mode="r+")[:] = value


def test_when_the_array_goes_first(file: Path) -> None:
    with tidegate.Arena("64MiB") as arena:
        fill(arena, file, 7)
        arena.stats()  # removes it
        assert all_are(file, 7)


@pytest.mark.slow
def test_from_the_middle_tier_too(file: Path) -> None:
    with tidegate.Arena("4MiB", middle="64MiB") as arena:
        fill(arena, file, 7)
        arena.stats()
        assert all_are(file, 7)


def test_when_the_arena_is_not_closed(file: Path) -> None:
    script = f"""
import tidegate
arena = tidegate.Arena("8MiB")
arena.open({str(file)!r}, "f8", mode="r+")[:] = 3
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=200)
    assert all_are(file, 3)


@pytest.mark.slow
def test_a_supervisor_that_ends_first_does_not_end_the_program_at_exit(file: Path) -> None:
    script = f"""
import atexit, gc, sys, time
@atexit.register  # before tidegate is imported: it runs when the arena has been closed
def late():
    sys.modules["__main__"].__dict__.update(arena=None, array=None)
    gc.collect()
    time.sleep(1)  # time enough for the supervisor to be gone
import tidegate
arena = tidegate.Arena("8MiB")
array = arena.open({str(file)!r}, "f8", mode="r+")
array[:] = 3
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=200)
    assert all_are(file, 3)


def test_an_array_keeps_its_arena() -> None:
    def make() -> Any:
        array = tidegate.Arena("8MiB").empty(NUMBERS)
        array[:] = 3
        return array

    assert make().sum() == 3 * NUMBERS


@pytest.fixture
def interrupting() -> Iterator[Any]:
    """Return a function that raises KeyboardInterrupt after so many seconds."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


# a Ctrl-C that is lost
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_in_any_call(interrupting: Any) -> None:
    arrived = 0
    with tidegate.Arena("16MiB") as arena:
        for seconds in np.linspace(0.0001, 0.002, 30):
            try:
                interrupting(seconds)
                array = arena.empty(300_000)
                interrupting(0)
                array[:] = 1
            except KeyboardInterrupt:
                arrived += 1
            interrupting(0)
        array = arena.empty(NUMBERS)
        array[:] = 2
        assert array.sum() == 2 * NUMBERS
        assert arena.stats()["faults"] > 0
    assert arrived > 0


def test_ctrl_c_while_closing_comes_after_the_last_byte(file: Path, interrupting: Any) -> None:
    arena = tidegate.Arena("64MiB")
    array = arena.open(file, "f8", mode="r+")
    array[:] = 5

    def close() -> None:
        interrupting(0.001)
        arena.close()
        time.sleep(200)  # on a machine that closes within a millisecond

    with pytest.raises(KeyboardInterrupt):
        close()
    arena.close()  # on one that took longer to begin
    assert all_are(file, 5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [np.dtype([("a", "i1"), ("b", "f8")], align=True), np.dtype((np.int32, (3,))), np.dtype(">i2")],
)
def test_types_are_those_of_numpy(kind: np.dtype[Any]) -> None:
    with tidegate.Arena("8MiB") as arena:
        ours, plain = arena.zeros((4, 2), kind), np.zeros((4, 2), kind)
        assert (ours.dtype, ours.shape) == (plain.dtype, plain.shape)
        assert (ours == plain).all()
        del ours


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((2**32, 2**31), "no room"),
        ((2**40, 2**40), "no room"),
        (3.7, "shape must be"),
        ("abc", "shape must be"),
        (-1, "negative"),
    ],
)
def test_wrong_shapes_do_no_harm(shape: Any, said: str) -> None:
    with tidegate.Arena("8MiB") as arena:
        with pytest.raises(TidegateError, match=said):
            arena.empty(shape)
        assert arena.empty(NUMBERS).sum() == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"placement": "explicit"}, "must know what each launch uses"),
        ({"placement": "rdm"}, "must know what each launch uses"),
        ({"middle": "999TiB"}, "this machine has"),
        ({"observed": -1}, "must be 0 or more"),
        ({"samples": -1}, "must be 1 or more"),
        ({"observe_share": 1.5}, "must be between 0 and 1"),
        ({"tiering": "tier-reuse"}, "give middle"),
        ({"eviction": tidegate.policy.EvictionPolicy}, "must be a name"),
        ({"prefetch": 5}, "must be a name"),
        ({"span": 0}, "cannot be reserved"),
        ({"span": "900TiB"}, "cannot be reserved"),
    ],
)
def test_wrong_options(options: dict[str, Any], said: str) -> None:
    with pytest.raises(TidegateError, match=said):
        tidegate.Arena("8MiB", **options)


@pytest.mark.slow
def test_a_policy_that_cannot_decide_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import tidegate\nclass Mine(tidegate.policy.EvictionPolicy):\n    pass\n"
    )
    with pytest.raises(TidegateError, match=r"has no method victim\(\)"):
        tidegate.Arena("8MiB", eviction=f"{tmp_path / 'mine.py'}:Mine")


@pytest.mark.parametrize(
    ("offset", "dtype", "said"), [(-4096, "f8", "multiple of"), (0, "S0", "with bytes")]
)
def test_wrong_ways_to_open(file: Path, offset: int, dtype: str, said: str) -> None:
    with tidegate.Arena("8MiB") as arena, pytest.raises(TidegateError, match=said):
        arena.open(file, dtype, offset=offset)


@pytest.mark.parametrize("dtype", ["f8", None])
def test_neither_folders_nor_pipes_are_opened(tmp_path: Path, dtype: str | None) -> None:
    os.mkfifo(tmp_path / "pipe")
    with tidegate.Arena("8MiB") as arena:
        for path in (tmp_path, tmp_path / "pipe"):
            with pytest.raises(TidegateError, match="not a regular file"):
                arena.open(path, dtype)
