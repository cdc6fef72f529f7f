"""What does recording cost: for each operator, and for the largest model?"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

from benchmarks.child import peak
from benchmarks.row import Row

OWN, SECONDS, MEMORY = 0.15, 60.0, 1.0  # ms an operator, s, GB, at most


def recording() -> list[Row]:
    command = [sys.executable, "-m", "benchmarks.recording"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    f = json.loads(done.stdout)
    return [
        Row(
            "recorder's own share of an operator",
            f["own_ms"],
            "ms",
            f"an operator on tensors without data takes {f['operator_ms']:.2f} ms in all",
            OWN,
        ),
        Row("Llama-405B forward, 8192 tokens", f["seconds"], "s", "recorded", SECONDS),
        Row("memory of that recording", f["bytes"] / 1e9, "GB", "peak", MEMORY),
    ]


def measure() -> dict[str, float]:
    """Record Llama-405B in this process."""
    from tidegate import record
    from tidegate.record.pytorch.recorder import Recorder

    spent, calls, note = 0.0, 0, Recorder._note

    def timed(self: Any, *args: Any) -> None:
        nonlocal spent, calls
        begin = time.process_time()  # other programs do not count
        note(self, *args)
        spent += time.process_time() - begin
        calls += 1

    Recorder._note = timed  # type: ignore[method-assign]
    begin = time.perf_counter()
    record.model("llama-405b", context=8192, decode=0)
    seconds = time.perf_counter() - begin
    return {
        "own_ms": spent / calls * 1e3,
        "operator_ms": seconds / calls * 1e3,
        "seconds": seconds,
        "bytes": float(peak()),
    }


if __name__ == "__main__":
    print(json.dumps(measure()))
