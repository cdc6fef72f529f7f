"""Files of ``mode="r+"`` hold everything that was written, whatever ends the program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from live.test_reliable import SMALL
from tidegate.live.arena.setup import ArenaSetup
from tidegate.live.transfer.last_changes import LastChanges
from tidegate.live.transfer.page_state import SLOTS, PageFlags, SampledPages

pytestmark = pytest.mark.live

BYTES = 4 << 20
# the file is 32 times as large as near memory has room for, or fits, or is seen through samples
ARENAS = {
    "small": SMALL,
    "fits": {"near": "8MiB", "geometry": "64KiB/2MiB"},
    "sampled": SMALL | {"eviction": "lru", "observe_share": 1.0},
    "middle": SMALL | {"middle": "2MiB", "tiering": "tier-order"},
}
PROGRAM = """
import os, signal, sys
import numpy as np
from tidegate.live import Arena
arena = Arena(**{options!r})
a = arena.open({path!r}, "u4", mode="r+")
a[:] = 1
arena.flush()
a[:] = np.arange(len(a))
a[::5000] += 1
{end}
"""
ENDS = {
    "SIGTERM": "os.kill(os.getpid(), signal.SIGTERM); signal.pause()",
    # under nohup it is ignored
    "SIGHUP": "signal.signal(signal.SIGHUP, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGHUP); "
    "signal.pause()",
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)",
    "_exit": "os._exit(3)",
    "exec": "os.execv(sys.executable, [sys.executable, '-c', ''])",
    "all terminated": "signal.signal(15, lambda *_: os._exit(3))\n"
    "for pid in (arena._supervisor.pid, os.getpid()): os.kill(pid, 15)",
}


def end(path: Path, options: dict[str, object], how: str) -> subprocess.CompletedProcess[str]:
    np.zeros(BYTES, "u1").tofile(path)
    code = PROGRAM.format(options=options, path=str(path), end=how)
    # stderr is read to its end, which is the supervisor's
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)


def expected() -> np.ndarray:
    right = np.arange(BYTES // 4, dtype="u4")
    right[::5000] += 1
    return right


@pytest.mark.parametrize("how", ENDS.values(), ids=ENDS)
def test_whatever_ends_the_program(tmp_path: Path, how: str) -> None:
    done = end(tmp_path / "data", SMALL, how)
    assert np.array_equal(np.fromfile(tmp_path / "data", "u4"), expected())
    (line,) = done.stderr.splitlines()
    assert line.startswith("tidegate: the program left its arena open; wrote ")
    assert line.endswith(" to data")


@pytest.mark.slow
@pytest.mark.parametrize("options", ARENAS.values(), ids=ARENAS)
def test_wherever_the_pages_are(tmp_path: Path, options: dict[str, object]) -> None:
    end(tmp_path / "data", options, ENDS["SIGKILL"])
    assert np.array_equal(np.fromfile(tmp_path / "data", "u4"), expected())


def test_nothing_is_said_if_nothing_is_left(tmp_path: Path) -> None:
    done = end(tmp_path / "data", SMALL, "arena.flush()\nos._exit(3)")
    assert (done.returncode, done.stderr) == (3, "")


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    limit = "import resource; resource.prlimit({}, resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))"
    how = limit.format("arena._supervisor.pid") + "\n" + ENDS["SIGKILL"]
    done = end(tmp_path / "data", {"near": "8MiB", "geometry": "64KiB/2MiB"}, how)
    (line,) = done.stderr.splitlines()
    assert line.endswith("; data cannot be written: File too large")
    kept = 1 << 18  # numbers below the limit
    assert np.array_equal(np.fromfile(tmp_path / "data", "u4")[:kept], expected()[:kept])


def test_near_memory_in_doubt_is_not_written() -> None:
    """A region that was being written as a whole when the pager died may be zeros."""
    page, pages = 4096, 4
    memory, file = os.memfd_create("near"), os.memfd_create("file")
    os.pwrite(memory, bytes(pages * page), 0)
    os.pwrite(file, b"x" * pages * page, 0)
    none = dict.fromkeys(("eviction", "prefetch", "placement", "tiering"), "")
    setup = ArenaSetup(
        name="",
        page=page,
        region=pages * page,
        pages=pages,
        frames=1,
        observed=None,
        samples=0,
        observe_share=1,
        watchdog=1,
        middle_bytes=0,
        memory=memory,
        flags=PageFlags.create(pages),
        copies=SampledPages.create(page, SLOTS),
        **none,
    )
    flags = PageFlags(setup.flags, pages)
    flags.set_dirty(0, pages, True)
    flags.set_in_doubt(0, pages, True)
    backing = {"offset": 0, "size": pages * page, "writable": True, "scratch": False}
    objects = {0: {"name": "f", "bytes": pages * page, "first_page": 0, "backing": backing}}
    assert LastChanges(setup).write(objects, {0: (file, file)}) == ""
    assert os.pread(file, 10, 0) == b"x" * 10
    flags.set_in_doubt(0, pages, False)
    LastChanges(setup).write(objects, {0: (file, file)})
    assert os.pread(file, pages * page + 1, 0) == bytes(pages * page)
    for fd in (memory, file, setup.flags, setup.copies):
        os.close(fd)
