"""Failures: a clear line, never a wrong byte, flushed data intact, and nothing left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from live.test_reliable import SMALL, WRITERS
from tidegate.errors import TidegateError
from tidegate.live import Arena

pytestmark = pytest.mark.live

FAULTS = Path(__file__).parent / "faults"
OPEN = f"""
import errno, os, signal, sys, time
import numpy as np
from tidegate.live import Arena
arena = Arena(**{SMALL!r})
"""


def with_fault(fault: str) -> dict[str, str]:
    path = os.pathsep.join([str(FAULTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    return os.environ | {"TIDEGATE_FAULT": fault, "PYTHONPATH": path}


def run(code: str, *before: str, **how: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, sys.executable, "-c", code], capture_output=True, text=True, timeout=200, **how
    )


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(pids: list[int], seconds: float = 200) -> None:
    end = time.monotonic() + seconds
    while any(map(is_running, pids)):
        assert time.monotonic() < end, f"of processes {pids} some live on"
        time.sleep(0.02)


# A process is killed


def test_without_its_supervisor_the_program_ends_with_a_line(tmp_path: Path) -> None:
    path = tmp_path / "data"
    np.zeros(1 << 20).tofile(path)
    code = f"""{OPEN}
a = arena.open({str(path)!r}, "f8", mode="r+")
a += 1
arena.flush()
a += 1
os.kill(arena._supervisor.pid, signal.SIGKILL)
time.sleep(5)
print("zeros" if not a.all() else "went on")
"""
    done = run(code)
    assert done.returncode == -signal.SIGBUS
    assert not done.stdout
    assert done.stderr.startswith("tidegate: live memory cannot go on: its supervisor is gone")
    assert len(done.stderr.splitlines()) == 1
    flushed = np.fromfile(path)
    assert ((flushed == 1) | (flushed == 2)).all()


def test_a_program_that_handles_sigbus_ends_all_the_same() -> None:
    code = f"""{OPEN}
import faulthandler
faulthandler.enable()  # its handler runs, but not in a system call that waits for a page
a = arena.empty(8 << 20, "u1")
a[:] = 7
target = os.open("/dev/null", os.O_WRONLY)
os.kill(arena._supervisor.pid, signal.SIGKILL)
while True:
    a.sum()
"""
    assert run(code).returncode in (-signal.SIGBUS, -signal.SIGKILL)


WAYS_TO_WAIT = ("write", "sleep", "system call", "handled")


@pytest.mark.parametrize(
    "what", ["sum", *(pytest.param(w, marks=pytest.mark.slow) for w in WAYS_TO_WAIT)]
)
def test_pager_and_supervisor_die_together(what: str) -> None:
    """Whatever the program does meanwhile, it ends, with one line."""
    code = f"""{OPEN}
from live.soak import children
a = arena.empty(8 << 20, "u1")
a[:] = 7
supervisor = arena._supervisor.pid
(pager,) = children(supervisor)
target = os.open("/dev/null", os.O_WRONLY)
if "{what}" == "handled":
    signal.signal(signal.SIGBUS, lambda *_: None)
os.kill(supervisor, signal.SIGSTOP)  # so that they die together
os.kill(pager, signal.SIGKILL)
os.kill(supervisor, signal.SIGKILL)
end = time.monotonic() + 100
while time.monotonic() < end:
    if "{what}" == "sum":
        a.sum()
    elif "{what}" == "write":
        a[:] = 8
    elif "{what}" == "system call":
        os.write(target, a)
    else:
        time.sleep(1)
"""
    tests = str(Path(__file__).parent.parent)
    done = run(code, env={**os.environ, "PYTHONPATH": tests})
    expected = (-signal.SIGBUS, -signal.SIGKILL) if what == "handled" else (-signal.SIGBUS,)
    assert done.returncode in expected
    assert done.stderr.startswith("tidegate: live memory cannot go on: its supervisor is gone")
    assert len(done.stderr.splitlines()) == 1


def test_a_killed_program_leaves_nothing(tmp_path: Path) -> None:
    code = f"""{OPEN.replace("**", f"store={str(tmp_path / 'scratch.bin')!r}, **")}
arena.empty(8 << 20, "u1")[:] = 7
children = open(f"/proc/{{arena._supervisor.pid}}/task/{{arena._supervisor.pid}}/children").read()
print(arena._supervisor.pid, children, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = run(code)
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2
    wait_until_gone(pids)
    assert not list(tmp_path.iterdir())
    assert not done.stderr


def test_ctrl_c_closes_the_arena(tmp_path: Path) -> None:
    path = tmp_path / "data"
    np.zeros(1 << 18).tofile(path)
    code = f"""{OPEN}
with arena:
    a = arena.open({str(path)!r}, "f8", mode="r+")
    a += 1
    print("ready", arena._supervisor.pid, flush=True)
    while True:
        a += 0
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        supervisor = int(process.stdout.readline().split()[1])
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=200)
    assert process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in said
    assert "tidegate:" not in said
    wait_until_gone([supervisor])
    assert (np.fromfile(path) == 1).all()  # it was closed, and so written back


@pytest.mark.slow
def test_pagers_that_die_in_the_middle_of_a_write_lose_nothing() -> None:
    for middle in ([], ["1MiB", "tier-random"]):
        command = [sys.executable, str(WRITERS), "lru", "tree", "2", "0", *middle]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=200, env=with_fault("die-in-write")
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["restarts"] > 2


def test_pagers_that_always_die_end_the_program_with_a_line() -> None:
    code = f"""{OPEN}
arena.empty(1 << 20, "u1")[:] = 7
"""
    done = run(code, env=with_fault("die-at-once"))
    assert done.returncode == -signal.SIGBUS
    assert "tidegate: live memory cannot go on: the pager died again and again" in done.stderr


def test_a_forked_child_gets_an_error_and_no_zeros() -> None:
    code = f"""{OPEN}
with arena:
    a = arena.empty(1 << 20, "u1")
    a[:] = 7
    child = os.fork()
    if child == 0:
        try:
            arena.stats()
        except Exception as error:
            print(error, flush=True)
        print(a[0], flush=True)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert (a == 7).all()
    print(os.waitstatus_to_exitcode(status))
"""
    done = run(code)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert "a forked child cannot use it" in said[0]
    assert said[1:] == ["1"]
    (line,) = done.stderr.splitlines()
    assert line.startswith("tidegate: a forked child used an array of its parent's arena")
    assert 'use the start method "spawn"' in line


@pytest.mark.slow
@pytest.mark.parametrize("use", ["a.sum()", "np.add(a, 1, out=a)", "bytes(a[:10])", "a[3] = 1"])
def test_a_worker_of_a_pool_says_what_to_do(use: str) -> None:
    code = f"""{OPEN}
import multiprocessing
a = arena.zeros(1 << 20, "u1")
def work():
    {use}
if __name__ == "__main__":
    worker = multiprocessing.get_context("fork").Process(target=work)
    worker.start()
    worker.join(100)
    print(worker.exitcode)
"""
    done = run(code)
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert 'use the start method "spawn"' in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_other_crashes_of_a_forked_child_stay_what_they_are() -> None:
    code = f"""{OPEN}
import ctypes
child = os.fork()
if child == 0:
    ctypes.string_at(8)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = run(code)
    assert (done.stdout, done.stderr) == (f"{-signal.SIGSEGV}\n", "")


# The store fails


def test_what_cannot_be_read_is_no_zeros() -> None:
    code = f"""{OPEN}
a = arena.empty(8 << 20, "u1")
a[:] = 7
for _ in range(20):
    if not (a == 7).all():
        print("wrong")
print("went on")
"""
    done = run(code, env=with_fault("read-error"))
    assert done.returncode == -signal.SIGBUS
    assert not done.stdout
    assert "tidegate: the store cannot be read: Input/output error" in done.stderr


def test_a_file_that_became_shorter_is_no_zeros(tmp_path: Path) -> None:
    path = tmp_path / "data"
    np.ones(1 << 20).tofile(path)
    code = f"""{OPEN}
a = arena.open({str(path)!r}, "f8")
a[0]
os.truncate({str(path)!r}, 1 << 20)
print(a[: 1 << 17].sum(), flush=True)          # what is left is there
print(a.sum())
"""
    done = run(code)
    assert done.returncode == -signal.SIGBUS
    assert done.stdout == f"{float(1 << 17)}\n"
    assert "shorter than it was" in done.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_said_before_anything_is_allocated(small_disk: Path) -> None:
    with Arena(store=small_disk / "scratch", **SMALL) as arena:  # type: ignore[arg-type]
        a = arena.empty(2 << 20, "u1")
        a[:] = 5
        with pytest.raises(TidegateError, match="no room"):
            arena.empty(8 << 20, "u1")
        assert (a == 5).all()


def test_a_disk_that_is_full_in_the_middle_ends_the_program(small_disk: Path) -> None:
    path = small_disk / "data"
    path.write_bytes(b"")
    os.truncate(path, 16 << 20)  # a hole: its space is not reserved
    code = f"""{OPEN}
a = arena.open({str(path)!r}, "u1", mode="r+")
a[: 1 << 20] = 9
arena.flush()
a[:] = 9
arena.flush()
print("went on")
"""
    done = run(code)
    assert not done.stdout
    assert "No space left on device" in done.stderr
    # in a flush it is an exception, in an eviction the end
    assert done.returncode in (1, -signal.SIGBUS)
    assert path.read_bytes()[: 1 << 20] == bytes([9]) * (1 << 20)


# The kernel or its keeper refuses

REFUSE = """
import ctypes, os, struct
def refuse(number, error):
    "Let the kernel answer this system call with an error from now on (seccomp)."
    load, equal, answer = 0x20, 0x15, 0x06
    program = struct.pack(
        "=HBBIHBBIHBBIHBBI",
        *(load, 0, 0, 0, equal, 0, 1, number),
        *(answer, 0, 0, 0x00050000 | error, answer, 0, 0, 0x7FFF0000),
    )
    buffer = ctypes.create_string_buffer(program, len(program))
    class Filter(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.byref(Filter(4, ctypes.addressof(buffer)))) == 0
"""
# user nobody, with permission to read all files: Python itself may need it
AS_NOBODY = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    "--inh-caps=-all,+dac_read_search",
    "--ambient-caps=-all,+dac_read_search",
    "--bounding-set=-all,+dac_read_search",
]
as_nobody = pytest.mark.skipif(
    os.getuid() != 0 or shutil.which("setpriv") is None,
    reason="only root can become nobody, with setpriv",
)


@as_nobody
@pytest.mark.parametrize(
    ("error", "said"), [("EPERM", "userfaultfd is not permitted"), ("ENOSYS", "has no userfaultfd")]
)
def test_without_userfaultfd_that_is_said(error: str, said: str) -> None:
    code = f"""{REFUSE}
import errno
from tidegate.live import Arena
from tidegate.live.transfer.userfault import _SYS_USERFAULTFD
refuse(_SYS_USERFAULTFD, errno.{error})
try:
    Arena(**{SMALL!r})
except Exception as refused:
    print(type(refused).__name__, refused)
"""
    done = run(code, *AS_NOBODY)
    assert done.stdout.startswith("TidegateError"), done.stderr
    assert said in done.stdout
    assert len(done.stdout.splitlines()) == 1


def test_a_kernel_that_is_too_old_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidegate.live.transfer import userfault

    def refuse(fd: int, what: int, *rest: object) -> int:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(userfault.fcntl, "ioctl", refuse)
    with pytest.raises(TidegateError, match=r"live memory needs 5\.19"):
        Arena(**SMALL)  # type: ignore[arg-type]


@as_nobody
def test_without_privilege_it_works_but_for_system_calls() -> None:
    code = f"""
import errno, os
import numpy as np
from tidegate.live import Arena
with Arena(**{SMALL | {"eviction": "lru"}!r}) as arena:
    a = arena.empty(4 << 20, "u1")
    for i in range(3):
        a[:] = i
        assert (a == i).all()
    stats = arena.stats()
    assert stats["evictions"] > 10 and stats["observations"] > 0
    there, end = os.pipe()
    os.write(end, b"x")
    b = arena.empty(1 << 20, "u1")
    try:
        os.readv(there, [b[:1]])
        print("read", arena.serves_system_calls)
    except OSError as error:
        print(errno.errorcode[error.errno], arena.serves_system_calls)
"""
    done = run(code, *AS_NOBODY)
    assert done.returncode == 0, done.stderr
    # the second where the administrator permits it
    assert done.stdout in ("EFAULT False\n", "read True\n")


@pytest.fixture
def failing_disk(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """An ext4 on a loop device, and the file under it: too small for all blocks, so writes fail."""
    under, folder = tmp_path / "under", tmp_path / "disk"
    under.mkdir()
    folder.mkdir()
    image = under / "image"
    steps = [
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(under)],
        ["truncate", "-s", "64m", str(image)],
        ["mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-E", "nodiscard", str(image)],
        ["mount", "-o", "loop", str(image), str(folder)],
    ]
    undo = [["umount", str(folder)], ["umount", str(under)]]
    try:
        for step in steps:
            try:
                done = subprocess.run(step, capture_output=True, text=True, timeout=60)
            except FileNotFoundError:
                pytest.skip(f"{step[0]} is not installed")
            if done.returncode:
                pytest.skip(f"no loop device can be mounted here: {done.stderr.strip()}")
        yield folder, image
    finally:
        for step in undo:
            subprocess.run(step, capture_output=True, timeout=60)


def test_a_device_that_cannot_write_is_said(failing_disk: tuple[Path, Path]) -> None:
    path = failing_disk[0] / "data"
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 32 << 20)  # the file system has room, the device not
    code = f"""{OPEN}
a = arena.open({str(path)!r}, "u1", mode="r+")
a[:] = 9
arena.flush()
print("went on")
"""
    done = run(code)
    assert not done.stdout
    # by the kernel's version
    assert "Input/output error" in done.stderr or "No space left on device" in done.stderr
    # in a flush it is an exception, in an eviction the end
    assert done.returncode in (1, -signal.SIGBUS)


def test_a_device_that_cannot_be_read_gives_no_zeros(failing_disk: tuple[Path, Path]) -> None:
    folder, image = failing_disk
    path = folder / "data"
    path.write_bytes(bytes([7]) * (4 << 20))
    subprocess.run(["sync", "-f", str(path)], check=True)
    code = f"""{OPEN}
a = arena.open({str(path)!r}, "u1")
print(a[0], flush=True)
os.truncate({str(image)!r}, 1 << 20)  # the rest of the device is gone
print(set(np.unique(a).tolist()))
"""
    done = run(code)
    assert done.returncode == -signal.SIGBUS
    assert done.stdout == "7\n"
    assert "tidegate: the store cannot be read: Input/output error" in done.stderr
