"""Limits of the system: one clear line, and nothing lost in silence."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from live.test_failures import OPEN, run, small_disk
from live.test_reliable import SMALL
from tidegate.errors import TidegateError
from tidegate.live import Arena

pytestmark = pytest.mark.live

__all__ = ["small_disk"]  # a fixture


def test_core_dumps_leave_the_arena_out() -> None:
    with Arena(**SMALL) as arena:  # type: ignore[arg-type]
        text = Path("/proc/self/smaps").read_text()
        mapping = text[text.index(f"{arena.addresses[0]:x}-") :]
        assert "dd" in re.search(r"VmFlags: (.*)", mapping)[1].split()  # type: ignore[index]


# Files that cannot be written back


def sparse_file(folder: Path) -> Path:
    path = folder / "data"
    path.write_bytes(b"")
    with path.open("r+b") as file:
        file.truncate(16 << 20)  # on a disk of 4 MiB
    return path


@pytest.mark.slow
@pytest.mark.parametrize("end", ["", "del arena, a", "sys.exit(0)"])
def test_a_write_back_that_fails_at_exit_is_an_error(small_disk: Path, end: str) -> None:
    code = f"""{OPEN.replace("512KiB", "32MiB")}
import atexit
atexit.register(lambda: print("other functions of atexit run", flush=True))
a = arena.open({str(sparse_file(small_disk))!r}, "u1", mode="r+")
a[:] = 9
{end}
"""
    done = run(code)
    assert done.returncode == 1
    assert done.stdout == "other functions of atexit run\n"
    lines = done.stderr.splitlines()  # the program's and, as it tries once more, the supervisor's
    full = "cannot be written: No space left on device"
    assert len(lines) == 2
    assert sum(line.startswith(f"tidegate: data: the store {full}") for line in lines) == 1
    assert sum(line.endswith(f"data {full}") for line in lines) == 1


def test_an_array_that_is_gone_and_cannot_be_written_back_stops_no_later_call(
    small_disk: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = sparse_file(small_disk)
    arena = Arena(**SMALL | {"near": "32MiB"})  # type: ignore[arg-type]
    a, b = arena.open(path, "u1", mode="r+"), arena.zeros(1 << 20, "u1")
    a[:] = 9
    del a
    assert arena.stats()["faults"] > 0
    b += 1
    assert (b == 1).all()
    (line,) = capfd.readouterr().err.splitlines()
    assert "data: the store cannot be written: No space left on device" in line
    with pytest.raises(TidegateError, match="No space left"):
        arena.flush()
    with pytest.raises(TidegateError, match="No space left"):
        arena.close()


def test_changes_that_could_be_written_later_are(small_disk: Path) -> None:
    path, other = sparse_file(small_disk), small_disk / "other"
    other.write_bytes(bytes(3 << 20))
    with Arena(**SMALL | {"near": "32MiB"}) as arena:  # type: ignore[arg-type]
        a = arena.open(path, "u1", mode="r+")
        a[: 2 << 20] = 9
        del a
        arena.stats()
        other.unlink()  # there is room now
        arena.flush()
        assert not [o for o in arena.stats()["objects"] if o["name"] == "data"]
    assert path.read_bytes()[: 2 << 20] == bytes([9]) * (2 << 20)


def test_one_file_that_fails_keeps_no_other_from_its_disk(small_disk: Path, tmp_path: Path) -> None:
    good = tmp_path / "good"
    np.zeros(1 << 20, "u1").tofile(good)
    arena = Arena(**SMALL | {"near": "32MiB"})  # type: ignore[arg-type]
    for path in (sparse_file(small_disk), good):
        arena.open(path, "u1", mode="r+")[:] = 9
    arena.stats()
    with pytest.raises(TidegateError, match="No space left"):
        arena.close()
    assert (np.fromfile(good, "u1") == 9).all()


# Threads that outlive the main thread


@pytest.mark.slow
@pytest.mark.parametrize("work", ["a += 1", "a.sum()", "b = a.copy()"])
def test_a_daemon_thread_that_uses_an_array_does_no_harm_at_exit(work: str) -> None:
    code = f"""{OPEN}
import threading
a = arena.empty(8 << 20, "u1")
def use():
    global a, b
    while True:
        {work}
for _ in range(3):
    threading.Thread(target=use, daemon=True).start()
time.sleep(0.5)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")


# Descriptors, addresses and file sizes


@pytest.mark.slow
def test_a_thousand_files_are_opened(tmp_path: Path) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 4096:
        pytest.skip("the hard limit of descriptors is too low")
    code = f"""{OPEN}
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
with open({str(tmp_path / "f")!r}, "wb") as file:
    file.write(bytes([7]) * 4096)
arrays = [arena.open(file.name, "u1") for _ in range(1000)]
supervisor = arena._supervisor.pid
os.kill(int(open(f"/proc/{{supervisor}}/task/{{supervisor}}/children").read()), signal.SIGKILL)
print(sum(int(a[0]) for a in arrays[::100]))
arena.close()
"""
    done = run(code)
    assert (done.stdout, done.stderr) == ("70\n", "")


def test_too_many_files_are_an_error_and_the_arena_goes_on(tmp_path: Path) -> None:
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
{OPEN}
from tidegate.errors import TidegateError
with open({str(tmp_path / "f")!r}, "wb") as file:
    file.write(bytes([7]) * 4096)
arrays = []
try:
    while len(arrays) < 100:
        arrays.append(arena.open(file.name, "u1"))
except TidegateError as error:
    print(error)
print(all(a[0] == 7 for a in arrays), 20 < len(arrays) < 60)
arrays.pop()
arrays.append(arena.open(file.name, "u1"))
arena.close()
"""
    done = run(code)
    assert not done.stderr
    first, second = done.stdout.splitlines()
    assert "f cannot be opened: Too many open files" in first
    assert "ulimit -n" in first
    assert second == "True True"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("RLIMIT_AS, 4 << 30", "Cannot allocate memory; give a smaller span, or raise ulimit -v"),
        ("RLIMIT_NOFILE, 12", "Too many open files; raise ulimit -n"),
        ("RLIMIT_FSIZE, 1 << 20", "File too large; give a smaller span, or raise ulimit -f"),
    ],
)
def test_a_limit_of_the_system_is_one_line(limit: str, said: str) -> None:
    kind, value = limit.split(", ")
    code = f"""
import resource
from tidegate.live import Arena
Arena("64MiB")  # all is imported
resource.setrlimit(resource.{kind}, ({value}, {value}))
try:
    Arena("64MiB")
except Exception as error:
    print(type(error).__name__, error)
"""
    done = run(code)
    assert done.stdout.startswith("TidegateError the arena cannot be opened: ")
    assert said in done.stdout


def test_a_span_that_cannot_be_reserved_is_one_line() -> None:
    said = "give a smaller span"
    try:
        Arena("64MiB", span="60TiB").close()  # some file systems have files of this size
    except TidegateError as error:
        said = str(error)
    assert "give a smaller span" in said


# Messages


def test_names_are_short() -> None:
    with Arena(**SMALL) as arena:  # type: ignore[arg-type]
        with pytest.raises(
            TidegateError, match="name must be of at most 256 characters, got 140000"
        ):
            arena.empty(10, name="n" * 140_000)
        arrays = [arena.empty(10, name="\U0001f600" * 255 + chr(97 + i)) for i in range(25)]
        assert len(arena.stats()["objects"]) == 20
        del arrays


@pytest.mark.slow
def test_an_error_of_a_policy_may_be_long(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("""
import tidegate
class Mine(tidegate.policy.EvictionPolicy):
    def victim(self): raise ValueError("x" * 1_000_000)
""")
    code = f"""
from tidegate.live import Arena
arena = Arena(**{SMALL!r}, eviction={str(tmp_path / "mine.py") + ":Mine"!r})
a = arena.empty(8 << 20, "u1")
a[:] = 7
assert (a == 7).all()
"""
    done = run(code)
    assert "policy 'Mine' raised in victim()" in done.stderr
    assert "eviction goes on with 'lrm'" in done.stderr
    assert len(done.stderr) < 5_000
    assert done.returncode == 0


# Memory: what docs/live-limits.md promises


def pss(pid: int) -> int:
    """Return the bytes of a process, shared pages by its share."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


@pytest.mark.slow
def test_memory_is_within_what_is_promised() -> None:
    near = 16 << 20
    with Arena(near, geometry="64KiB/2MiB") as arena:
        a = arena.empty(2 * near, "u1")
        most = 0
        for _ in range(2):
            for first in range(0, len(a), 1 << 20):
                a[first : first + (1 << 20)] += 1
                text = Path("/proc/self/smaps").read_text()
                mapping = text[text.index(f"{arena.addresses[0]:x}-") :]
                most = max(most, int(re.search(r"Rss: +(\d+)", mapping)[1]) << 10)  # type: ignore[index]
        pid = arena._supervisor.pid
        pagers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        beside = pss(pid) + sum(map(pss, map(int, pagers)))
    assert near <= most <= near + (2 << 20)  # a region more while another one leaves
    assert beside <= 70 << 20
