"""``live run --catch``: large blocks of malloc in the arena, with the right bytes."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.errors import TidegateError
from tidegate.live.script import catch

pytestmark = pytest.mark.live

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
BLOCKS = """
import ctypes, os, sys, threading
libc = ctypes.CDLL(None)
for name in ("malloc", "calloc", "realloc", "aligned_alloc", "memalign"):
    getattr(libc, name).restype = ctypes.c_void_p
for name, arguments in {"malloc": 1, "calloc": 2, "aligned_alloc": 2, "memalign": 2}.items():
    getattr(libc, name).argtypes = [ctypes.c_size_t] * arguments
libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.free.argtypes = libc.malloc_usable_size.argtypes = [ctypes.c_void_p]
libc.malloc_usable_size.restype = ctypes.c_size_t
M = 1 << 20

def fill(at, n, value):
    ctypes.memset(at, value, n)
    return at

def holds(at, n, value):
    return ctypes.string_at(at, n) == bytes([value]) * n

blocks = [fill(libc.malloc(3 * M), 3 * M, i) for i in range(20)]   # 60 MiB in 16
low, high = min(blocks), max(blocks) + 4 * M
assert all(holds(b, 3 * M, i) for i, b in enumerate(blocks))
for b in blocks[::2]:
    libc.free(b)
again = libc.calloc(3, M)                # where another was
assert low <= again < high and holds(again, 3 * M, 0)
assert low <= (grown := libc.realloc(blocks[1], 9 * M)) and holds(grown, 3 * M, 1)
assert libc.malloc_usable_size(grown) == 9 * M
small = libc.realloc(grown, 1000)
assert not low <= small < high and holds(small, 1000, 1)
large = libc.realloc(small, 5 * M)
assert low <= large and holds(large, 1000, 1)
assert libc.memalign(4096, 2 * M) % 4096 == libc.aligned_alloc(65536, 2 * M) % 65536 == 0
out = ctypes.c_void_p()
assert libc.posix_memalign(ctypes.byref(out), 3, M) == 22
assert libc.posix_memalign(ctypes.byref(out), 64, 2 * M) == 0 and out.value % 64 == 0
assert not libc.malloc(1 << 62)          # more than there is: glibc's answer
outside = fill(libc.malloc(500 * M), M, 7)
assert not low <= outside < high

def churn(value):
    for _ in range(20):
        at = fill(libc.malloc(2 * M), 2 * M, value)
        assert holds(at, 2 * M, value)
        libc.free(at)

threads = [threading.Thread(target=churn, args=(i,)) for i in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
pid = os.fork()
if pid == 0:                             # a child has glibc's memory
    child = fill(libc.malloc(2 * M), 2 * M, 9)
    libc.free(blocks[3])
    os._exit(0 if holds(child, 2 * M, 9) and not low <= child < high else 3)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert all(holds(blocks[i], 3 * M, i) for i in range(3, 20, 2))
assert "LD_PRELOAD" not in os.environ
print("right")
"""


def live_run(script: Path, *options: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tidegate", "live", "run", *options, str(script)]
    environment = os.environ | more
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=250)


@pytest.mark.slow
@needs_compiler
def test_blocks_of_malloc_are_right(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(BLOCKS)
    done = live_run(script, "--near", "16MiB", "--catch", "malloc", "--room", "256MiB")
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr
    found = re.search(r"caught (\d+) large blocks of malloc, .*; 2 blocks stayed", done.stderr)
    assert found, done.stderr
    assert int(found[1]) > 100


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(
    "options", [("--room", "1"), ("--room", "4MiB", "--min-array", "8MiB")], ids=" ".join
)
def test_room_that_holds_no_block_is_refused(tmp_path: Path, options: tuple[str, ...]) -> None:
    script = tmp_path / "script.py"
    script.write_text("print('it ran')\n")
    done = live_run(script, "--near", "16MiB", "--catch", "malloc", *options)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "--room must hold a region of 2.00 MiB and a block of --min-array" in line


@pytest.mark.slow
@pytest.mark.extra
@needs_compiler
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_tensors_of_torch_are_right(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\n"
        "a = torch.arange(5 << 20)\n"  # 40 MiB in 16
        "for _ in range(2):\n    a = a + 1\n"
        "print(int(a.sum()), len([0] * (1 << 20)))\n"  # the list is not caught
    )
    done = live_run(script, "--near", "16MiB", "--catch", "torch", "--room", "128MiB")
    n = 5 << 20
    assert (done.returncode, done.stdout) == (0, f"{n * (n - 1) // 2 + 2 * n} 1048576\n")
    assert "caught 3 large blocks of torch, 80.0 MiB at a time" in done.stderr


@pytest.mark.slow
@pytest.mark.extra
@needs_compiler
@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="pyarrow is not installed")
def test_arrays_and_tables_of_arrow_are_right(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np, pyarrow as pa, pyarrow.compute as pc, pyarrow.parquet as pq\n"
        f"path = {str(tmp_path / 'b.parquet')!r}\n"
        "a = pa.array(np.arange(3 << 19))\n"  # NumPy's
        "b = pc.add(pc.add(a, 1), 1)\n"  # two of 12 MiB, in 8
        "pq.write_table(pa.table({'b': b}), path, use_dictionary=False)\n"
        "print(pc.sum(b).as_py(), pq.read_table(path)['b'].combine_chunks().equals(b))\n"
        "print(pa.default_memory_pool().backend_name)\n"
    )
    done = live_run(script, "--near", "8MiB", "--catch", "arrow", "--room", "128MiB")
    n = 3 << 19
    said = f"{n * (n - 1) // 2 + 2 * n} True\nsystem\n"
    assert (done.returncode, done.stdout) == (0, said), done.stderr
    found = re.search(r"caught (\d+) large blocks of arrow, ([\d.]+) MiB at a time", done.stderr)
    assert found, done.stderr
    assert int(found[1]) >= 3  # two sums and the table that was read
    assert float(found[2]) >= 24


def test_what_cannot_be_caught_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TidegateError, match="kind of memory to catch"):
        catch.check_caught("cuda")
    with pytest.raises(TidegateError, match="LD_PRELOAD is set already"):
        catch.prepare("malloc", {"LD_PRELOAD": "other.so"})
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(TidegateError, match="needs a C compiler once, and there is none"):
        catch._compile(tmp_path / "catch.so")
    monkeypatch.setenv("CC", "false-compiler")
    with pytest.raises(TidegateError, match="false-compiler cannot be run"):
        catch._compile(tmp_path / "catch.so")
    assert list(tmp_path.iterdir()) == []


def test_room_without_catch_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.touch()
    done = live_run(script, "--room", "1GiB")
    assert (done.returncode, "without --catch" in done.stderr) == (2, True)


def test_a_library_is_not_taken_from_where_others_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEGATE_CACHE", str(tmp_path / "cache"))
    made = catch.library()
    assert catch.library() == made
    made.parent.chmod(0o777)
    with pytest.raises(TidegateError, match="others own or can write"):
        catch.library()
