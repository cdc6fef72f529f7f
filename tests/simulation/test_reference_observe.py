"""Oracle: observation against the reference simulator, with LRU by faults and notifications."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulation import reference
from simulation.reference import Reference
from simulation.scripted import AdvisingScript, ScriptedPlacement
from tidegate.machine.machine import Machine
from tidegate.policies.interface.page_flags import COMING, NEAR
from traces import Given, simulation_of
from worlds import observing, traces

pytestmark = pytest.mark.oracle

COUNTS = (
    "touches",
    "stalls",
    "faults",
    "batches",
    "evictions",
    "decisions",
    "pages_in",
    "pages_prefetched",
    "pages_evicted",
    "pages_unused",
    "remote_touches",
    "remote_bytes",
    "observations",
    "notifications",
    "pages_sampled",
    "pages_home",
)
TIMES = (
    "running",
    "fault_handling",
    "transfer_in",
    "transfer_out",
    "policy_overhead",
    "link_in_time",
    "link_out_time",
)


@pytest.mark.slow
@settings(deadline=None, max_examples=400, derandomize=True)
@given(
    traces(),
    observing(),
    st.data(),
    st.integers(1, 4),
    st.sampled_from((0, 0, 1, 3)),
    st.sampled_from((51, 101)),
    st.booleans(),
    st.sampled_from((None, None, 1, 2, 3)),
)
def test_observing_lru_equals_reference(
    trace: Given,
    on: Machine,
    data: Any,
    observable: int,
    samples: int,
    threshold: int,
    dirty_only: bool,
    advice: int | None,
) -> None:
    frames = data.draw(st.integers(1, trace.regions))
    placement: Any = "um"
    if advice is not None:
        placement = ScriptedPlacement()
        placement.script = AdvisingScript(advice, trace.pages, trace.regions)
    simulation = simulation_of(
        trace,
        on,
        frames,
        eviction="lru",
        prefetch=f"tree(threshold={threshold})" if threshold <= 100 else "none",
        placement=placement,
        dirty_only=dirty_only,
        samples=samples,
        observed=observable,
    )
    simulation.run()
    expected = Reference(
        trace,
        on,
        frames,
        reference.lru,
        threshold=None if threshold > 100 else threshold,
        dirty_only=dirty_only,
        user_space=True,
        observer=reference.watch_lru,
        observable=min(observable, frames),
        samples=samples,
        placer=(None if advice is None else AdvisingScript(advice, trace.pages, trace.regions)),
    ).play()
    books = simulation.books[0]
    assert {c: int(books[c]) for c in COUNTS} == {c: expected.count[c] for c in COUNTS}
    near = np.flatnonzero(simulation.memory.page_state & (NEAR | COMING)).tolist()
    assert near == sorted(p.number for p in expected.page.values() if p.has_room)
    assert int(books["samples"]) == expected.samples
    for part in TIMES:
        assert float(books[part]) == pytest.approx(expected.time[part], rel=1e-9, abs=1e-6), part
    assert float(books["front"]) == pytest.approx(expected.now, rel=1e-12)


def test_something_was_noticed() -> None:
    """Observation happens in the test above."""
    seen = {"observations": 0, "notifications": 0, "samples": 0}

    @settings(deadline=None, max_examples=100, derandomize=True, database=None)
    @given(traces(), observing())
    def count(trace: Given, on: Machine) -> None:
        simulation = simulation_of(
            trace, on, max(1, trace.regions - 1), eviction="lru", prefetch="none", observed=4
        )
        simulation.run()
        for what in seen:
            seen[what] = max(seen[what], int(simulation.books[0][what]))

    count()
    assert seen["observations"] > 5
    assert seen["notifications"] > 2
    assert seen["samples"] > 1
