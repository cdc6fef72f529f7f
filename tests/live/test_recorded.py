"""A live program's faults, replayed in simulation."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.errors import TidegateError
from tidegate.live import Arena
from tidegate.live.script.recording import RecordedTrace
from traces import machine, run_of

pytestmark = [pytest.mark.live, pytest.mark.oracle]


def test_a_recorded_program_faults_as_often_when_it_is_simulated() -> None:
    with Arena(
        "512KiB", geometry="16KiB/128KiB", span="64MiB", eviction="lrm", record=True
    ) as arena:
        a = arena.empty(2 << 20, "u1")
        for _ in range(3):
            a[:: 16 << 10] = 1
        trace = RecordedTrace(arena)
        live = arena.stats()
    run = run_of(trace, machine(), 4, eviction="lrm")
    assert (run.counts["faults"], run.counts["evictions"]) == (live["faults"], live["evictions"])
    assert live["faults"] == 3 * 128


def test_every_object_is_a_reference_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with Arena(
        "512KiB", geometry="16KiB/128KiB", span="64MiB", eviction="lrm", record=True
    ) as arena:
        arrays = [arena.empty(128 << 10, "u1") for _ in range(3)]
        for i in (2, 0, 1):
            arrays[i][0] = 1
        trace = RecordedTrace(arena)
        monkeypatch.setattr("tidegate.live.script.recording.LAST_REFERENCE", 1)
        few = RecordedTrace(arena)
    assert _references(trace) == [2, 0, 1]
    assert _references(few) == [1, 0, 1]


def _references(trace: RecordedTrace) -> list[int]:
    return [
        int(r)
        for launch in trace.launches()
        for segment in launch.segments
        for r in np.asarray(segment.reference)
    ]


def test_an_arena_without_arrays_has_nothing_to_replay() -> None:
    with (
        Arena("512KiB", geometry="16KiB/128KiB", span="64MiB", record=True) as arena,
        pytest.raises(TidegateError, match="no large array"),
    ):
        RecordedTrace(arena)
