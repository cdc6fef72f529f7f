"""One process compiles a function at a time."""

from __future__ import annotations

import gc
import subprocess
import sys
import time

import pytest

from tidegate.compiled import turns

HOLD = """
import sys, time
from tidegate.compiled.turns import own_turn
with own_turn(sys.argv[1], "f"):
    print("mine", flush=True)
    {then}
"""


def hold(folder, then: str) -> subprocess.Popen:
    """A process that has the turn."""
    command = [sys.executable, "-c", HOLD.format(then=then), str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "mine\n"
    return process


def test_a_turn_within_a_turn_is_the_same(tmp_path):
    with turns.own_turn(str(tmp_path), "f"), turns.own_turn(str(tmp_path), "f"):
        pass
    with turns.own_turn(str(tmp_path), "f"):
        pass


@pytest.mark.slow
def test_the_next_waits_for_the_end(tmp_path):
    before = hold(tmp_path, "time.sleep(0.5)")
    with turns.own_turn(str(tmp_path), "f"):
        ended = before.poll() is not None or before.wait(timeout=300) == 0
    assert ended


@pytest.mark.slow
def test_another_function_does_not_wait(tmp_path):
    other = hold(tmp_path, "time.sleep(60)")
    with turns.own_turn(str(tmp_path), "g"):
        assert other.poll() is None  # with PATIENCE 120 it would have ended
    other.kill()
    other.wait()


def test_the_collector_pauses_and_goes_on(tmp_path):
    with turns.own_turn(str(tmp_path), "f"):
        with turns.own_turn(str(tmp_path), "g"):
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


@pytest.mark.slow
def test_a_process_that_was_killed_holds_nobody_up(tmp_path, monkeypatch):
    other = hold(tmp_path, "time.sleep(60)")
    other.kill()
    other.wait()
    monkeypatch.setattr(turns, "PATIENCE", 600)
    start = time.monotonic()
    with turns.own_turn(str(tmp_path), "f"):
        assert time.monotonic() - start < 300


@pytest.mark.slow
def test_a_process_that_is_stopped_is_not_waited_for_forever(tmp_path, monkeypatch):
    other = hold(tmp_path, "time.sleep(60)")
    monkeypatch.setattr(turns, "PATIENCE", 0.1)
    with turns.own_turn(str(tmp_path), "f"):
        assert other.poll() is None
    other.kill()
    other.wait()


@pytest.mark.parametrize("folder", ["", "/nowhere/at/all"])
def test_a_folder_that_cannot_be_written_to_is_no_error(folder):
    with turns.own_turn(folder, "f"):
        pass


@pytest.mark.slow
def test_two_processes_compile_once(tmp_path):
    program = tmp_path / "mine.py"
    program.write_text(
        "import time\n"
        "from tidegate.compiled.jit import jit\n"
        "@jit\ndef double(x):\n    return 2 * x\n"
        "time.sleep(max(0, float(open('when').read()) - time.time()))\n"
        "assert double(2) == 4\n"
        "print(sum(double.stats.cache_hits.values()))\n"
    )
    (tmp_path / "when").write_text(str(time.time() + 1.5))
    command = [sys.executable, str(program)]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) for _ in "ab"
    ]
    assert sorted(p.communicate()[0].strip() for p in both) == ["0", "1"]
