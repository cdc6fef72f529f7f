"""Oracle: the compiled mechanism against a second simulator, written apart (reference.py), on random small worlds."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanism import reference
from mechanism.reference import Reference, tree_rule
from traces import CONSTANTS, Given, Kernel, Touch, machine, simulation_of

from tidegate.machine.machine import Machine
from tidegate.mechanism.geometry import Geometry
from tidegate.mechanism.pages import COMING, NEAR
from tidegate.policies import Everything, EvictionPolicy, PlacementPolicy, Policy, PrefetchPolicy

COUNTS = (
    "touches", "stalls", "remote_touches", "remote_bytes", "faults", "raw_faults", "batches", "evictions", "decisions",
    "pages_in", "pages_prefetched", "pages_evicted", "pages_written_back", "pages_unused", "runs_in", "frames_peak",
)  # fmt: skip
TIMES = (
    "running", "near_time", "remote_time", "fault_handling", "transfer_in", "transfer_out", "policy_overhead", "driver_time",
    "link_in_time", "link_out_time",
)  # fmt: skip
VICTIMS = {
    "lrm": lambda: reference.lrm, "fifo": lambda: reference.fifo, "mru": lambda: reference.mru,
    "lru-ideal": lambda: reference.lru_ideal, "clock": reference.clock, "belady": lambda: reference.belady,
}  # fmt: skip


# Random policies: a script is asked at every event and answers with requests; the same script drives both simulators


class Script:
    """Answers events with random requests. A script gets quieter with time, so that runs end."""

    def __init__(self, seed: int, pages: int, regions: int):
        self.random, self.pages, self.regions, self.heard = random.Random(seed), pages, regions, 0
        self.said: list[tuple[str, int]] = []

    def __call__(self, event: str, number: int, resident: set[int]) -> list[tuple[Any, ...]]:
        self.heard += 1
        self.said.append((event, number))
        draw = self.random
        requests: list[tuple[Any, ...]] = []
        for _ in range(draw.choice((0, 0, 0, 1, 2)) if self.heard < 60 else 0):
            first = draw.randrange(self.pages)
            count = draw.randint(1, min(self.pages - first, 12))
            region = draw.randrange(self.regions)
            verb = draw.choice(("prefetch", "prefetch", "evict", "advise", "threshold"))
            if verb == "prefetch":
                requests.append((verb, first, count))
            elif verb == "advise":
                requests.append((verb, first, count, draw.choice(("far", None))))
            elif verb == "threshold":
                requests.append((verb, draw.choice((0, 25, 51, 75, 101))))
            elif region in resident:
                requests.append((verb, region))
        return requests


class Scripted(Policy):
    """Passes events to its script and requests to memory."""

    script: Script
    threshold = 101

    def start(self) -> None:
        self.memory.set_prefetch_threshold(self.threshold)

    def on_fault(self, region: int) -> None:
        self._ask("fault", region)

    def on_prefetch(self, region: int) -> None:
        self._ask("prefetch", region)

    def on_eviction(self, region: int) -> None:
        self._ask("eviction", region)

    def on_launch(self, launch: int) -> None:
        self._ask("launch", launch)

    def _ask(self, event: str, number: int) -> None:
        verbs = {
            "prefetch": self.memory.prefetch, "evict": self.memory.evict, "advise": self.memory.advise,
            "threshold": self.memory.set_prefetch_threshold,
        }  # fmt: skip
        for verb, *rest in self.script(event, number, self.memory.resident):
            verbs[verb](*rest)


class ScriptedPrefetch(Scripted, PrefetchPolicy): ...


class ScriptedPlacement(Scripted, PlacementPolicy):
    def start(self) -> None: ...


class Threshold(PrefetchPolicy):
    """Tree prefetch at a threshold, or none."""

    threshold = 101

    def start(self) -> None:
        self.memory.set_prefetch_threshold(self.threshold)


class Recorder(PlacementPolicy):
    """Gives no advice and writes down who leaves."""

    def start(self) -> None:
        self.evicted: list[int] = []

    def on_eviction(self, region: int) -> None:
        self.evicted.append(region)


class AnyVictim(EvictionPolicy):
    """Any resident region, those on their way in too."""

    def start(self) -> None:
        self.random = random.Random(7)

    def victim(self) -> int:
        return self.random.choice(sorted(self.resident))


def any_victim() -> Any:
    draw = random.Random(7)
    return lambda r: draw.choice(sorted(r.resident))


class TrackedLRM(EvictionPolicy):
    """LRM that asks to see everything, so that the sweep that keeps track of touches is the one in use."""

    sees = Everything()

    def on_fault(self, region: int) -> None:
        self.order.move_to_tail(region)

    def on_eviction(self, region: int) -> None:
        self.order.remove(region)

    def victim(self) -> int:
        return self.order.head


@dataclass
class World:
    """Everything a run is made from."""

    trace: Given
    machine: Machine
    frames: int
    eviction: str
    threshold: int
    dirty_only: bool
    user_space: bool
    prefetch_seed: int | None
    placement_seed: int | None

    def scripts(self) -> list[Script | None]:
        pages, regions = self.trace.pages, self.trace.regions
        return [None if s is None else Script(s, pages, regions) for s in (self.prefetch_seed, self.placement_seed)]

    def compiled(self) -> tuple[Any, list[int]]:
        prefetcher, placer = self.scripts()
        prefetch: Any = ScriptedPrefetch() if prefetcher else Threshold()
        prefetch.script, prefetch.threshold = prefetcher, self.threshold
        placement: Any = ScriptedPlacement() if placer else Recorder()
        placement.script = placer
        eviction: Any = {"any": AnyVictim, "tracked": TrackedLRM}.get(self.eviction)
        simulation = simulation_of(
            self.trace, self.machine, self.frames, eviction=eviction() if eviction else self.eviction, prefetch=prefetch,
            placement=placement, dirty_only=self.dirty_only,
        )  # fmt: skip
        if self.user_space:
            simulation.eviction.in_driver = False
            simulation.__post_init__()
        simulation.run()
        return simulation, [n for e, n in placer.said if e == "eviction"] if placer else placement.evicted

    def reference(self) -> Reference:
        prefetcher, placer = self.scripts()
        victim = {**VICTIMS, "any": any_victim, "tracked": lambda: reference.lrm}[self.eviction]()
        return Reference(
            self.trace, self.machine, self.frames, victim, threshold=None if self.threshold > 100 else self.threshold,
            dirty_only=self.dirty_only, user_space=self.user_space, prefetcher=prefetcher, placer=placer,
        ).play()  # fmt: skip


@st.composite
def machines(draw: Any) -> Machine:
    """Constants are sums of powers of two, so both simulators add them up exactly, in whatever order."""
    one_of = lambda *values: draw(st.sampled_from(values))  # noqa: E731
    return machine(
        slots=draw(st.integers(1, 8)), batch_faults=draw(st.integers(1, 8)), pipelined=draw(st.booleans()),
        bandwidth=one_of(4.0, 64.0, 512.0), flops=one_of(64.0, 1024.0), latency=one_of(0.0, 2.0, 4096.0),
        launch_overhead=one_of(0.0, 4000.0), inward=one_of(2.0, 16.0), outward=one_of(1.0, 8.0, 16.0),
        both=one_of(2.0, 16.0, 32.0), run_overhead=one_of(0.0, 1536.0), remote_share=one_of(0.5, 1.0),
        remote_latency=one_of(0.0, 640.0), batch_overhead=one_of(0.0, 20_000.0), region_overhead=one_of(0.0, 10_000.0),
        unmap_per_kib=one_of(0.0, 48.0), decision=one_of(0.0, 1024.0),
    )  # fmt: skip


@st.composite
def kernels(draw: Any, pages: list[int]) -> Kernel:
    """Blocks over these pages: now and then the same page again, mostly near the last one, sometimes anywhere."""
    seed, blocks = draw(st.integers(0, 10**6)), draw(st.integers(1, 20))
    rng = random.Random(seed)
    made, at = [], rng.randrange(len(pages))
    for _ in range(blocks):
        block = []
        for _ in range(rng.choice((0, 1, 2, 3, 6, 10))):
            at = rng.choice((at, at + 1, at + 1, at + 2, rng.randrange(len(pages)))) % len(pages)
            block.append(Touch(pages[at], rng.random() < 0.3, rng.choice((0, 1, 64, 512, 4096)), rng.randrange(4)))
        made.append(block)
    cuts = draw(st.lists(st.integers(0, blocks), max_size=3))
    return Kernel(made, draw(st.sampled_from((1, 1, 2, 5, 16))), draw(st.sampled_from((0.0, 0.25, 8.0))), tuple(cuts))


@st.composite
def worlds(draw: Any, evictions: tuple[str, ...] = (*VICTIMS, "any", "tracked"), scripted: bool = False) -> World:
    page, per_region = draw(st.sampled_from(((4096, 1), (4096, 2), (4096, 8), (1024, 16), (65536, 4))))
    geometry = Geometry(page, page * per_region)
    objects = draw(st.lists(st.integers(1, 3 * per_region), min_size=1, max_size=3))
    pages = [p for o in Given([], objects, geometry).objects for p in range(o.first_page, o.first_page + o.pages)]
    trace = Given(draw(st.lists(kernels(pages), min_size=1, max_size=3)), objects, geometry)
    if not any(block for kernel in trace.kernels for block in kernel.blocks):
        trace = Given([Kernel([[Touch(pages[0])]])], objects, geometry)
    seeds = st.integers(0, 10**6) if scripted else st.none()
    return World(
        trace, draw(machines()), draw(st.integers(1, max(1, trace.regions))), draw(st.sampled_from(evictions)),
        draw(st.sampled_from((0, 25, 51, 75, 100, 101, 101))), draw(st.booleans()), draw(st.booleans()),
        draw(seeds), draw(st.none() | seeds if scripted else seeds),
    )  # fmt: skip


def check(world: World) -> None:
    """Both simulators agree on all that can be asked."""
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


@settings(deadline=None, max_examples=300, derandomize=True)
@given(worlds())
def test_compiled_equals_reference(world):
    check(world)


@settings(deadline=None, max_examples=300, derandomize=True)
@given(worlds(scripted=True))
def test_compiled_equals_reference_whatever_policies_ask_for(world):
    check(world)
