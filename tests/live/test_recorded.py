"""A live program's faults, replayed in simulation."""

from __future__ import annotations

from tidegate.live import Arena
from tidegate.live.recorded import RecordedTrace
from traces import machine, run_of


def test_a_recorded_program_faults_as_often_when_it_is_simulated() -> None:
    with Arena("512KiB", geometry="16KiB/128KiB", span="64MiB", eviction="lrm", record=True) as arena:
        a = arena.empty(2 << 20, "u1")
        for _ in range(3):
            a[:: 16 << 10] = 1
        trace = RecordedTrace(arena)
        live = arena.stats()
    run = run_of(trace, machine(), 4, eviction="lrm")
    assert (run.counts["faults"], run.counts["evictions"]) == (live["faults"], live["evictions"])
    assert live["faults"] == 3 * 128
