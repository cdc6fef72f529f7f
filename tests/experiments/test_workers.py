"""Worker processes: they die with their parent, and they run the code that the parent has."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.experiments import grid

ENDLESS = """
import sys, time
from tidegate.experiments.sweeps.execution import run_all

def go():
    import endless
    run_all([1, 2], endless.Endless(), workers=2)

if __name__ == "__main__":
    if "--command" in sys.argv:
        from tidegate import cli
        class Command:
            def main(self, words, *how, **more):
                go()
        cli._command = Command
        cli.main()
    else:
        go()
"""
WORK = """
import os, time
from tidegate.experiments.sweeps.batches import Work

class Endless(Work):
    def run(self, task):
        os.write(1, b"ready\\n")
        time.sleep(600)
"""


LOST = """
import os, signal, time
from multiprocessing import Pipe
from tidegate.experiments.sweeps.worker_process import serve

class Lost:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)  # as in a callback of the compiler

def answer(_):
    lost = Lost()
    del lost
    time.sleep(600)

here, there = Pipe()
here.send(answer)
here.send(1)
serve(there, os.getppid())
print("ended")
"""


def test_a_stop_that_python_loses_is_silent_and_comes_again(tmp_path):
    (tmp_path / "main.py").write_text(LOST)
    ended = subprocess.run([sys.executable, tmp_path / "main.py"], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "ended\n")  # workers write to standard error


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("command", [True, False], ids=["command", "script"])
def test_workers_die_with_their_parent(tmp_path, how, command):
    """The workers hold the caller's pipe: it ends when the last of them has."""
    (tmp_path / "endless.py").write_text(WORK)
    (tmp_path / "main.py").write_text(ENDLESS)
    words = ["main.py", *(["--command"] if command else [])]
    source = str(Path(grid.__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # where workers write
        env=os.environ | {"PYTHONPATH": source},
    ) as parent:
        assert parent.stdout
        assert [parent.stdout.readline() for _ in range(2)] == [b"ready\n"] * 2
        parent.send_signal(how)
        said, _ = parent.communicate(timeout=300)  # reads to the end of the pipe
    if command and how == signal.SIGTERM:
        assert parent.returncode == 130
        assert said.decode().splitlines()[0] == "tidegate: stopped; nothing was written"
    else:
        assert parent.returncode == -how


MINE = """
from tidegate.policy import EvictionPolicy, Option
import helper

K = "oldest"

class Mine(EvictionPolicy):
    def on_fault(self, region):
        if region not in self.order:
            self.order.move_to_tail(region)

    def on_eviction(self, region):
        self.order.remove(region)

    def victim(self):
        return self.order.tail if "newest" in (K, helper.K) else self.order.head
"""
SCRIPT = """
import sys
from tidegate import RunSpec
from tidegate.experiments import run_grid
from tidegate.plugins import eviction
from tidegate.policy import EvictionPolicy

class Own(EvictionPolicy):
    def on_fault(self, region):
        if region not in self.order:
            self.order.move_to_tail(region)
    def on_eviction(self, region): self.order.remove(region)
    def victim(self): return self.order.head

def evictions(policies):
    specs = [RunSpec("cyclic(bytes=16MiB, passes=2)", near="8MiB", slots=1, prefetch="none",
                     eviction=policy) for policy in policies]
    return [r.counts["evictions"] for r in run_grid(specs, workers=2, cache=False)]

if __name__ == "__main__":
    if sys.argv[1] == "file first":
        loaded = eviction.find("mine.py:Mine")
        import mine
    else:
        import mine
        loaded = eviction.find("mine.py:Mine")
    import helper
    racers = ["mine.py:Mine", loaded, loaded(), mine.Mine, mine.Mine(), Own, Own()]
    print(evictions(racers))
    helper.K = "newest"  # seen by the imported class, not by the class from the file
    print(evictions(racers))
"""


@pytest.mark.slow
@pytest.mark.parametrize("order", ["file first", "import first"])
def test_a_class_by_file_and_by_import_in_one_process(tmp_path, order):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "helper.py").write_text('K = "oldest"\n')
    (tmp_path / "script.py").write_text(SCRIPT)
    ran = subprocess.run(
        [sys.executable, "script.py", order],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"PYTHONPATH": str(Path(grid.__file__).parents[2])},
    )
    first, second = ran.stdout.splitlines() or [ran.stderr] * 2
    assert first == str([12] * 7)
    assert second == str([12, 12, 12, 9, 9, 12, 12])


def test_two_folders_with_a_neighbour_of_one_name(tmp_path):
    from tidegate import run

    for folder, choice in (("a", "oldest"), ("b", "newest")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(MINE)
        (tmp_path / folder / "helper.py").write_text(f'K = "{choice}"\n')
    found = [
        run(
            "cyclic(bytes=16MiB, passes=2)",
            near="8MiB",
            slots=1,
            prefetch="none",
            eviction=str(tmp_path / folder / "mine.py"),
        ).counts["evictions"]
        for folder in ("a", "b", "a")
    ]
    assert found == [12, 9, 12]
    assert "helper" not in sys.modules
