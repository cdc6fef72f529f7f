"""Sweeps of tiny runs whose workers are killed.

By the runs themselves, which is certain; by a thread, at random moments; and a child process that
makes such a sweep and is killed with it.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tidegate.experiments import RunSpec, Sweep
from tidegate.experiments.sweeps.parts import PARTS, unpacked
from tidegate.experiments.sweeps.places import FileStore

TINY = "cyclic(bytes=4MiB, passes=1)"

DEADLY = """
import os, signal
from tidegate.policy import EvictionPolicy, Option

class Deadly(EvictionPolicy):
    mark = Option("", "file that it leaves, so that it kills its process once")

    def victim(self):
        try:
            os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return min(self.resident)
        os.kill(os.getpid(), signal.SIGKILL)
"""


def tiny_runs(count: int) -> list[RunSpec]:
    """Return so many different runs of about 5 ms."""
    return [RunSpec(TINY, near="2MiB", eviction=f"random(seed={i})", slots=8) for i in range(count)]


def deadly_runs(folder: Path, count: int) -> tuple[list[RunSpec], list[Path]]:
    """Return runs that each kill their worker once, and the files that tell that they did."""
    file = folder / "deadly.py"
    file.write_text(DEADLY)
    marks = [folder / f"mark-{i}" for i in range(count)]
    runs = [
        RunSpec(TINY, near="2MiB", eviction=f"{file}:Deadly(mark={mark})", compiled=False)
        for mark in marks
    ]
    return runs, marks


def names_in(place: FileStore) -> list[str]:
    """Return the name of every row in a store, with repeats."""
    found: list[str] = []
    for file in place.names(PARTS):
        content = place.get(file)
        assert content is not None
        found += unpacked(content, ["run"])["run"].to_list()
    return found


def own_workers() -> list[int]:
    """Return the worker processes of this one."""
    return [child.pid for child in multiprocessing.active_children() if child.pid]


def check_whole(sweep: Sweep) -> None:
    """All runs are answered, and none is twice in the store."""
    assert sorted(names_in(sweep.place)) == sorted(sweep.names)


@contextmanager
def killing(find: Callable[[], list[int]], times: int, seed: int = 0) -> Iterator[list[int]]:
    """Kill processes that ``find`` returns at random moments while the block runs."""
    draw, over, killed = random.Random(seed), threading.Event(), list[int]()

    def kill() -> None:
        while len(killed) < times and not over.wait(draw.uniform(0.05, 0.4)):
            for pid in draw.sample(found, 1) if (found := find()) else ():
                try:
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
                except ProcessLookupError:
                    pass

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
from killed_sweeps import tiny_runs
from tidegate import Sweep
if __name__ == "__main__":
    swept = Sweep(tiny_runs({runs}), {store!r}).run(on={on!r}, workers={workers!r})
    print("made", swept.made, "there", swept.there, flush=True)
"""


def start_client(
    store: str, runs: int, on: str | None = None, workers: int | None = None
) -> subprocess.Popen[str]:
    """Start a process that makes the sweep."""
    here = str(Path(__file__).parent)
    text = SCRIPT.format(folder=here, runs=runs, store=store, on=on, workers=workers)
    return subprocess.Popen(
        [sys.executable, "-c", text],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1] / "src")},
    )


def wait_for_rows(place: FileStore, least: int, client: subprocess.Popen[str]) -> None:
    """Wait until the store has so many rows."""
    end = time.monotonic() + 300
    while len(names_in(place)) < least:
        assert client.poll() is None, client.communicate()
        assert time.monotonic() < end, "the sweep makes nothing"
        time.sleep(0.05)
