"""Oracle: the compiled mechanism against a second simulator (reference.py) on random runs."""

from __future__ import annotations

import dataclasses
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulation import reference
from simulation.reference import Reference
from simulation.scripted import AsynchronousScript, Script, ScriptedPlacement, ScriptedPrefetch
from tidegate.machine.machine import Machine
from tidegate.policies.interface.page_flags import COMING, NEAR
from tidegate.policy import Everything, EvictionPolicy, PlacementPolicy, PrefetchPolicy
from tidegate.trace.geometry import Geometry
from traces import Given, simulation_of
from worlds import lives, machines, presets, traces

pytestmark = pytest.mark.oracle

COUNTS = (
    "touches",
    "stalls",
    "waits",
    "remote_touches",
    "remote_bytes",
    "faults",
    "raw_faults",
    "batches",
    "evictions",
    "decisions",
    "pages_in",
    "pages_born",
    "pages_discarded",
    "pages_prefetched",
    "pages_evicted",
    "pages_written_back",
    "pages_unused",
    "copies_in",
    "frames_peak",
)
TIMES = (
    "running",
    "near_time",
    "remote_time",
    "fault_handling",
    "transfer_in",
    "transfer_out",
    "policy_overhead",
    "driver_time",
    "link_in_time",
    "link_out_time",
)
VICTIMS = {
    "lrm": lambda: reference.lrm,
    "fifo": lambda: reference.fifo,
    "mru": lambda: reference.mru,
    "lru-ideal": lambda: reference.lru_ideal,
    "clock": reference.clock,
    "belady": lambda: reference.belady,
}


class Threshold(PrefetchPolicy):
    """Tree prefetch at a threshold, or none."""

    threshold = 101

    def start(self) -> None:
        self.memory.set_prefetch_threshold(self.threshold)


class Recorder(PlacementPolicy):
    """Records evictions and requests nothing."""

    def start(self) -> None:
        self.evicted: list[int] = []

    def on_eviction(self, region: int) -> None:
        self.evicted.append(region)

    def on_free(self, region: int) -> None: ...


class AnyVictim(EvictionPolicy):
    """Names any resident region, served ones included."""

    def start(self) -> None:
        self.random = random.Random(7)

    def victim(self) -> int:
        return self.random.choice(sorted(self.resident))


def any_victim() -> Any:
    draw = random.Random(7)
    return lambda r: draw.choice(sorted(r.resident))


class TrackedLRM(EvictionPolicy):
    """LRM that declares Everything(), so that the tracking sweep is used."""

    sees = Everything()

    def on_fault(self, region: int) -> None:
        self.order.move_to_tail(region)

    def on_eviction(self, region: int) -> None:
        self.order.remove(region)

    def victim(self) -> int:
        return self.order.head


@dataclass
class World:
    """Inputs of one run."""

    trace: Given
    machine: Machine
    frames: int
    eviction: str
    threshold: int
    dirty_only: bool
    user_space: bool
    prefetch_seed: int | None
    placement_seed: int | None
    script: type[Script] = Script

    def scripts(self) -> list[Script | None]:
        pages, regions = self.trace.pages, self.trace.regions
        return [
            None if s is None else self.script(s, pages, regions)
            for s in (self.prefetch_seed, self.placement_seed)
        ]

    def compiled(self) -> tuple[Any, list[int]]:
        if self.eviction == "belady":  # foresee() walks each segment by itself: see test_properties
            self.trace.kernels = [
                dataclasses.replace(kernel, cuts=()) for kernel in self.trace.kernels
            ]
        prefetcher, placer = self.scripts()
        prefetch: Any = ScriptedPrefetch() if prefetcher else Threshold()
        prefetch.script, prefetch.threshold = prefetcher, self.threshold
        placement: Any = ScriptedPlacement() if placer else Recorder()
        placement.script = placer
        eviction: Any = {"any": AnyVictim, "tracked": TrackedLRM}.get(self.eviction)
        simulation = simulation_of(
            self.trace,
            self.machine,
            self.frames,
            eviction=eviction() if eviction else self.eviction,
            prefetch=prefetch,
            placement=placement,
            dirty_only=self.dirty_only,
        )
        if self.user_space:
            simulation.eviction.in_driver = False
            simulation.__post_init__()
        simulation.run()
        return simulation, [
            n for e, n in placer.said if e == "eviction"
        ] if placer else placement.evicted

    def reference(self) -> Reference:
        prefetcher, placer = self.scripts()
        victim = {**VICTIMS, "any": any_victim, "tracked": lambda: reference.lrm}[self.eviction]()
        return Reference(
            self.trace,
            self.machine,
            self.frames,
            victim,
            threshold=None if self.threshold > 100 else self.threshold,
            dirty_only=self.dirty_only,
            user_space=self.user_space,
            prefetcher=prefetcher,
            placer=placer,
        ).play()


@st.composite
def worlds(
    draw: Any,
    on: st.SearchStrategy[Machine],
    scripted: bool = False,
    programs: st.SearchStrategy[Given] = traces(),
    script: type[Script] = Script,
) -> World:
    trace = draw(programs)
    seeds = st.integers(0, 10**6) if scripted else st.none()
    return World(
        trace,
        draw(on),
        draw(st.integers(1, trace.regions)),
        draw(st.sampled_from((*VICTIMS, "any", "tracked"))),
        draw(st.sampled_from((0, 25, 51, 75, 100, 101, 101))),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(seeds),
        draw(st.none() | seeds if scripted else seeds),
        script,
    )


def check(world: World) -> None:
    """Both simulators agree on all results."""
    expected = world.reference()
    simulation, evicted = world.compiled()
    books = simulation.books[0]
    assert evicted == expected.evicted
    assert {c: int(books[c]) for c in COUNTS} == {c: expected.count[c] for c in COUNTS}
    near = np.flatnonzero(simulation.memory.page_state & (NEAR | COMING)).tolist()
    assert near == sorted(p.number for p in expected.page.values() if p.has_room)
    for part in TIMES:
        assert float(books[part]) == pytest.approx(expected.time[part], rel=1e-9, abs=1e-6), part
    assert float(books["front"]) == pytest.approx(expected.now, rel=1e-12)


@settings(deadline=None, max_examples=500, derandomize=True)
@given(worlds(machines()))
def test_compiled_equals_reference(world):
    check(world)


BLOCKS = Geometry(), Geometry(65536, 65536 * 4)  # 2 MiB, and less of them


@pytest.mark.slow
@settings(deadline=None, max_examples=300, derandomize=True)
@given(worlds(machines(), programs=traces(BLOCKS)))
def test_compiled_equals_reference_with_pages_of_64_kib(world):
    """Faults ask for parts of pages, and an allocation's tail has 1 to 31 pages."""
    check(world)


@pytest.mark.slow
@settings(deadline=None, max_examples=500, derandomize=True)
@given(worlds(machines(), scripted=True))
def test_compiled_equals_reference_whatever_policies_ask_for(world):
    check(world)


@pytest.mark.slow
@settings(deadline=None, max_examples=200, derandomize=True)
@given(worlds(presets(), scripted=True))
def test_compiled_equals_reference_on_real_machines(world):
    check(world)


@pytest.mark.slow
@settings(deadline=None, max_examples=300, derandomize=True)
@given(worlds(machines(), programs=lives()))
def test_compiled_equals_reference_when_data_are_born_copied_and_freed(world):
    check(world)


@pytest.mark.slow
@settings(deadline=None, max_examples=500, derandomize=True)
@given(worlds(machines(), scripted=True, programs=lives(), script=AsynchronousScript))
def test_compiled_equals_reference_with_copy_streams(world):
    check(world)


@pytest.mark.slow
@settings(deadline=None, max_examples=100, derandomize=True)
@given(worlds(presets(), scripted=True, programs=lives(), script=AsynchronousScript))
def test_compiled_equals_reference_with_copy_streams_on_real_machines(world):
    check(world)
