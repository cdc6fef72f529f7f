"""``tidegate live top`` in a terminal, and to a pipe."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys

import pytest

from live.test_reliable import SMALL
from tidegate.cli.live import CLEAR
from tidegate.live import Arena

pytestmark = pytest.mark.live
TOP = [sys.executable, "-m", "tidegate", "live", "top"]


def read_until(terminal: int, wanted: bytes, times: int) -> bytes:
    seen = b""
    while seen.count(wanted) < times:
        seen += os.read(terminal, 4096)
    return seen


def test_it_refreshes_until_ctrl_c() -> None:
    terminal, theirs = pty.openpty()
    with Arena(**SMALL) as arena:  # type: ignore[arg-type]
        arena.empty(1 << 20, "u1", name="mine")[:] = 1
        process = subprocess.Popen(
            [*TOP, "--seconds", "0.1"], stdin=theirs, stdout=theirs, start_new_session=True
        )
        os.close(theirs)
        read_until(terminal, CLEAR.encode(), 3)
        read_until(terminal, str(os.getpid()).encode(), 1)
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):  # the other end of the terminal is closed
        while os.read(terminal, 4096):
            pass
    assert process.wait(timeout=100) == 0
    os.close(terminal)


@pytest.mark.slow
def test_a_pipe_gets_it_once() -> None:
    with Arena(**SMALL) as arena:  # type: ignore[arg-type]
        arena.empty(1 << 20, "u1")[:] = 1
        done = subprocess.run([*TOP, "--seconds", "0"], capture_output=True, text=True, timeout=100)
        said = subprocess.run([*TOP, "--json"], capture_output=True, text=True, timeout=100).stdout
    assert done.returncode == 0
    assert str(os.getpid()) in done.stdout
    assert CLEAR not in done.stdout
    assert os.getpid() in [a["process"] for a in json.loads(said)]
