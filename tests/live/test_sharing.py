"""Arrays that several processes read: one pager, and nobody reads a wrong byte, whoever dies."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from live.weights.test_weights import safetensors
from live.writers import kill_pager
from tidegate.errors import TidegateError
from tidegate.live import Arena, load_safetensors

pytestmark = pytest.mark.live

NEAR, WORDS = 8 << 20, (20 << 20) // 8
# the reader's program: a handle comes by stdin, then a line for each thing to do
READER = """
import pickle, sys
import numpy as np
a = pickle.loads(bytes.fromhex(sys.stdin.readline())).open()
for line in sys.stdin:
    said = eval(line)
    print(said.item() if isinstance(said, np.generic) else said, flush=True)
"""


class Reader:
    """A process that has opened a handle and evaluates lines."""

    def __init__(self, handle: object, code: str = READER):
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.say(pickle.dumps(handle).hex())

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        print(line, file=self.process.stdin, flush=True)

    def answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ask(self, line: str) -> str:
        self.say(line)
        return self.answer()


@contextlib.contextmanager
def reading(handle: object, code: str = READER) -> Iterator[Reader]:
    reader = Reader(handle, code)
    try:
        yield reader
    finally:
        reader.process.kill()
        reader.process.communicate()


@contextlib.contextmanager
def shared(**options: str) -> Iterator[tuple[Arena, np.ndarray]]:
    with Arena(NEAR, geometry="64KiB/512KiB", span="1GiB", **options) as arena:
        a = arena.empty(WORDS, "i8")
        a[:] = np.arange(WORDS)
        yield arena, a


@pytest.mark.slow
@pytest.mark.parametrize("eviction", ["cp", "mhpe"])
def test_a_reader_sees_what_the_owner_has_written(eviction: str) -> None:
    """Also where most of it is far, and what is written later; pagers die meanwhile."""
    with shared(eviction=eviction) as (arena, a), reading(arena.share(a[5::3])) as reader:
        right = f"(a == np.arange(5, {WORDS}, 3)).all()"
        assert reader.ask("a.flags.writeable") == "False"
        assert reader.ask(right) == "True"
        kill_pager(arena._supervisor.pid)
        assert reader.ask(right) == "True"
        a[:] = 7
        reader.say("all((a == 7).all() for _ in range(3))")
        for _ in range(5):
            kill_pager(arena._supervisor.pid)
            assert (a[::1000] == 7).all()
        assert reader.answer() == "True"
        assert arena.stats()["restarts"] == 6


def test_pages_are_read_once_for_all(tmp_path: Path) -> None:
    file = tmp_path / "data.bin"
    np.arange(NEAR // 16).astype("i8").tofile(file)
    with Arena(NEAR, geometry="64KiB/512KiB", span="1GiB") as arena:
        a = arena.open(file, "i8")
        handle, total = arena.share(a), int(a.sum())
        before = arena.stats()["bytes_in"]
        with reading(handle) as one, reading(handle) as two:
            assert one.ask("a.sum()") == two.ask("a.sum()") == str(total)
        assert arena.stats()["bytes_in"] == before


def test_huge_pages_are_shared_too() -> None:
    with Arena("16MiB", eviction="lru", prefetch="region", observe_share=1) as arena:
        a = arena.empty(5 << 20, "i8")
        a[:] = np.arange(len(a))
        with reading(arena.share(a)) as reader:
            for _ in range(2):
                assert reader.ask(f"(a == np.arange({len(a)})).all()") == "True"
                assert (a == np.arange(len(a))).all()


def test_an_array_that_is_gone_stays_for_its_readers() -> None:
    with shared() as (arena, a):
        handle = arena.share(a)
        with reading(handle) as reader:
            del a
            b = arena.empty(WORDS, "i8")
            b[:] = 1
            assert reader.ask(f"(a == np.arange({WORDS})).all()") == "True"


def test_readers_may_die_at_any_moment() -> None:
    with shared() as (arena, a):
        for _ in range(3):
            with reading(arena.share(a)) as reader:
                reader.say("[a.sum() for _ in range(1000)]")
                assert int(a[::4096].sum()) == int(np.arange(WORDS)[::4096].sum())
        assert (a == np.arange(WORDS)).all()
        assert arena.stats()["restarts"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("how", ["close", "supervisor"])
def test_readers_end_when_nobody_serves_them(how: str) -> None:
    code = READER + "\nsys.exit(0)"
    opened = """
import sys, time, pickle, os, signal
import numpy as np
from tidegate.live import Arena
arena = Arena("8MiB", geometry="64KiB/512KiB", span="1GiB")
a = arena.empty(20 << 20, "u1")
a[:] = 7
print(pickle.dumps(arena.share(a)).hex(), arena._supervisor.pid, flush=True)
sys.stdin.readline()
arena.close()
"""
    owner = subprocess.Popen(
        [sys.executable, "-c", opened],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert owner.stdout is not None
    words = owner.stdout.readline().split()
    with reading(pickle.loads(bytes.fromhex(words[0])), code) as reader:
        assert reader.ask("(a == 7).all()") == "True"
        reader.say("[a.sum() for _ in range(10**9)]")
        if how == "close":
            _, said = owner.communicate("\n")
            assert "the process that opened this shared arena has left it" in said
        else:
            os.kill(int(words[1]), signal.SIGKILL)
        assert reader.process.wait(60) == -signal.SIGBUS
    owner.kill()
    owner.communicate()


def test_a_handle_of_an_arena_that_is_gone_is_refused() -> None:
    with shared() as (arena, a):
        handle = arena.share(a)
    with pytest.raises(TidegateError, match="the process that made it must be running"):
        handle.open()


def test_a_reader_may_let_go_and_come_back() -> None:
    code = READER.replace(".open()", "")
    with shared() as (arena, a), reading(arena.share(a), code) as reader:
        for _ in range(3):
            assert reader.ask(f"(a.open() == np.arange({WORDS})).all()") == "True"
        assert (a[::512] == np.arange(WORDS)[::512]).all()


def test_a_reader_ends_as_any_program_does() -> None:
    """With an array that is still there at its end; a daemon thread uses it."""
    code = READER.replace("for line", "sys.stdin.readline()\nfor line") + (
        "import threading\n"
        "threading.Thread(target=lambda: [a.sum() for _ in range(10**9)], daemon=True).start()\n"
        "print('end')\n"
    )
    with shared() as (arena, a), reading(arena.share(a), code) as reader:
        said, errors = reader.process.communicate("\n", timeout=200)
        assert (reader.process.returncode, said, errors) == (0, "end\n", "")


def test_the_owner_and_a_forked_child_open_a_handle_too() -> None:
    """The owner has the memory already; the child gets its own view of it."""
    with shared() as (arena, a):
        handle = arena.share(a)
        view = handle.open()
        assert view.ctypes.data == a.ctypes.data
        pid = os.fork()
        if pid == 0:
            os._exit(0 if (handle.open() == np.arange(WORDS)).all() else 3)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert (view == np.arange(WORDS)).all()


def test_weights_can_be_sent_to_other_processes(tmp_path: Path) -> None:
    path, values = tmp_path / "w.safetensors", np.arange(3000, dtype="f4").reshape(30, 100)
    path.write_bytes(safetensors({"w": values}))
    code = READER.replace(".open()", "")
    with load_safetensors(path, near="4MiB", span="1GiB") as weights, reading(weights, code) as one:
        asked = "list(a), a.kind('w'), float(a['w'].sum()), a['w'].shape"
        assert one.ask(asked) == str((["w"], "F32", float(values.sum()), (30, 100)))
