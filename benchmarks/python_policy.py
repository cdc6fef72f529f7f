"""What does a policy that runs in Python cost above a compiled one?

The same run of LRM twice, compiled and in Python. An event is a call of a policy's method; a third
run counts them.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from benchmarks.row import Row
from benchmarks.timing import best_of
from tidegate import RunSpec
from tidegate.policies.eviction.lrm import LRM

WORKLOAD = "cyclic(bytes=10GiB, passes=10)"
MOST = 1.0  # µs per event
REPETITIONS = 5


class Counted(LRM):
    """LRM that counts its calls."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.calls: Counter[str] = Counter()

    def on_fault(self, region: int) -> None:
        self.calls["on_fault"] += 1
        super().on_fault(region)

    def on_eviction(self, region: int) -> None:
        self.calls["on_eviction"] += 1
        super().on_eviction(region)

    def victim(self) -> int:
        self.calls["victim"] += 1
        return super().victim()


def python_policy() -> list[Row]:
    counted = Counted()
    RunSpec(WORKLOAD, eviction=counted, prefetch="region", compiled=False).prepare().run()
    events = counted.calls.total()
    seconds = {}
    for compiled in (True, False):
        spec = RunSpec(WORKLOAD, eviction="lrm", prefetch="region", compiled=compiled)
        seconds[compiled] = best_of(REPETITIONS, lambda s: s.run(), spec.prepare).cpu
    extra = (seconds[False] - seconds[True]) / events * 1e6
    against = (
        f"lrm, {events:,} events: {seconds[False]:.2f} s in Python, {seconds[True]:.2f} s compiled"
    )
    return [Row("a Python policy, above a compiled one", extra, "µs per event", against, MOST)]
