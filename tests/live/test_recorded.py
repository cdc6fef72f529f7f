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
        "512KiB",
        geometry="16KiB/128KiB",
        span="64MiB",
        eviction="lrm",
        prefetch="none",
        record=True,
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
        "512KiB",
        geometry="16KiB/128KiB",
        span="64MiB",
        eviction="lrm",
        prefetch="none",
        record=True,
    ) as arena:
        arrays = [arena.empty(128 << 10, "u1") for _ in range(3)]
        for i in (2, 0, 1):
            arrays[i][0] = 1
        trace = RecordedTrace(arena)
        monkeypatch.setattr("tidegate.live.script.recording.LAST_REFERENCE", 1)
        few = RecordedTrace(arena)
    assert _references(trace) == [2, 0, 1]
    assert _references(few) == [1, 0, 1]


@pytest.mark.closed_form
def test_an_array_that_is_gone_is_not_written_back() -> None:
    """Two arrays, one after the other, and a third that is there all along: each is born near."""
    with Arena(
        "512KiB",
        geometry="16KiB/128KiB",
        span="64MiB",
        eviction="lrm",
        prefetch="none",
        record=True,
    ) as arena:
        kept = arena.empty(128 << 10, "u1")
        kept[0] = 1
        for _ in range(2):
            a = arena.empty(256 << 10, "u1")
            a[:: 16 << 10] = 1
            del a
        arena.flush()  # tells the pager of arrays that are gone
        kept[64 << 10] = 1
        trace = RecordedTrace(arena)
    launches = list(trace.launches())
    assert [len(launch.frees) for launch in launches] == [1, 1, 0]
    run = run_of(trace, machine(), 64, prefetch="none")
    assert run.counts["pages_born"] == run.counts["faults"] == 34
    assert run.counts["pages_in"] == run.counts["pages_written_back"] == 0
    assert run.counts["pages_discarded"] == 32


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
