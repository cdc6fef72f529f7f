"""A run in a process of its own, whose peak memory is its own: ``python -m benchmarks.child ASK``.

ASK is a JSON object of ``tidegate.run``'s arguments. The child makes a small run first, so that
loading the compiled code is not counted as part of the run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Report:
    """Measurements of a child; seconds and bytes."""

    wall: float
    cpu: float
    # processor time until everything was imported, compiled or loaded, and a small run made
    start: float
    touches: int
    faults: int
    evictions: int
    peak: int


def peak() -> int:
    """Return the peak memory of this program in bytes; getrusage counts its parent's, too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def run_in_child(environment: dict[str, str] | None = None, **settings: Any) -> Report:
    """``tidegate.run(**settings)`` in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.child", json.dumps(settings)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return Report(**json.loads(done.stdout))


def measure(settings: dict[str, Any]) -> Report:
    import tidegate

    policies = {name: settings[name] for name in ("eviction", "prefetch") if name in settings}
    tidegate.run("cyclic(bytes=64MiB, passes=2)", near="48MiB", cache=False, **policies)
    wall, cpu = time.perf_counter(), time.process_time()
    counts = tidegate.run(settings.pop("workload"), cache=False, **settings).counts
    return Report(
        wall=time.perf_counter() - wall,
        cpu=time.process_time() - cpu,
        start=cpu,
        **{name: counts[name] for name in ("touches", "faults", "evictions")},
        peak=peak(),
    )


if __name__ == "__main__":
    print(json.dumps(asdict(measure(json.loads(sys.argv[1])))))
