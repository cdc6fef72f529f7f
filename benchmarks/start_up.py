"""How long until something happens?

``tidegate --help``; the first run ever, when the core is compiled; a later first run, when it comes
from the cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.child import run_in_child
from benchmarks.row import Row

HELP, COMPILE = 0.3, 10.0  # seconds, at most
REPETITIONS = 5
TINY = {"workload": "cyclic(bytes=64MiB, passes=2)", "near": "48MiB"}


def start_up() -> list[Row]:
    bare = _seconds([sys.executable, "-c", "pass"])
    shown = _seconds([str(Path(sys.executable).with_name("tidegate")), "--help"])
    with tempfile.TemporaryDirectory() as folder:
        fresh = os.environ | {"TIDEGATE_CACHE": folder}
        first = run_in_child(fresh, **TINY).start
        later = min(run_in_child(fresh, **TINY).start for _ in range(3))
    return [
        Row("tidegate --help", shown, "s", f"python -c pass takes {bare:.2f} s", HELP),
        Row(
            "first compile of the core",
            first - later,
            "s",
            f"the first run ever takes {first:.1f} s",
            COMPILE,
        ),
        Row(
            "first run from the cache",
            later,
            "s",
            "imports, loading the compiled code, a run of 2,048 touches",
        ),
    ]


def _seconds(command: list[str]) -> float:
    """The best wall time of a command."""
    times = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - start)
    return min(times)
