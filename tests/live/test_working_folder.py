"""No code of the working folder runs in a process that we start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.live
MODULES = ("resource", "selectors", "json", "socket", "signal", "pickle")
ARENA = """
import sys
sys.path = [p for p in sys.path if p]
import numpy as np, tidegate
with tidegate.Arena("8MiB", span="1GiB") as arena:
    a = arena.zeros(1000)
    a += 1
    print(int(a.sum()))
"""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder that others could write, with files of the names of modules."""
    folder = tmp_path / "others"
    folder.mkdir()
    for name in MODULES:
        (folder / f"{name}.py").write_text("import os\nos.write(2, b'taken over')\nos._exit(9)\n")
    return folder


def run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=250)


def test_an_arena_starts_its_supervisor_without_it(hostile: Path) -> None:
    done = run(sys.executable, "-P", "-c", ARENA, folder=hostile)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1000\n", "")


def test_a_script_has_its_own_folder_and_no_other(hostile: Path, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("VALUE = 42\n")
    script = tmp_path / "script.py"
    script.write_text("import sys, beside\nprint(beside.VALUE, sys.path[0])\n")
    command = [sys.executable, "-P", "-m", "tidegate", "live", "run", "--near", "8MiB", "--quiet"]
    done = run(*command, str(script), folder=hostile)
    assert (done.returncode, done.stdout) == (0, f"42 {tmp_path}\n")
    assert "taken over" not in done.stderr
