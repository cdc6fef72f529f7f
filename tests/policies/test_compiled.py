"""A compiled twin decides what its Python class decides: same victims, same books, same time."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import PolicyError
from tidegate.policies import PlacementPolicy, PrefetchPolicy
from tidegate.policies.eviction.lrm import LRM
from tidegate.policies.prefetch.together import make_prefetch
from tidegate.policies.registries import prefetch
from tidegate.reproduce.observuvm.grid import GRID, grid_of
from tidegate.reproduce.observuvm.setup import SYSTEMS, Setup
from traces import FLAT, PAGES, Given, Kernel, flat, machine, one_block, reads, simulation_of
from worlds import machines, observing, traces

TWINS = [
    "lrm",
    "fifo",
    "mru",
    "clock",
    "lru-ideal",
    "belady",
    "lru",
    "lfu",
    "cp",
    "tournament",
    "random",
    "reserved-lru",
    "sle",
]
OPTIONS = [
    "lfu(bins=2)",
    "lfu(bins=3, remember=False)",
    "lfu(fault_counts=False)",
    "cp(start_share=0, floor=0, observe_share=1)",
    "cp(start_share=0.5, floor=0.3, step=2)",
    "tournament(patience=1, margin=1)",
    "tournament(policies=lru+lfu+cp, patience=3, margin=1, afresh=True)",
    "tournament(policies=lrm+mru+lru, patience=2)",
    "tournament(policies=fifo+mru, patience=1, margin=1.5)",
    "tournament(policies=lfu(bins=2)+cp(start_share=0.25)+lru, patience=2)",
    "tournament(policies=tournament+fifo, patience=2)",
    "tournament(policies=lrm+clock+lru-ideal, patience=2)",
]
PREFETCHERS = [
    "none",
    "tree",
    "fdp(every=1, enough=1)",
    "fdp(every=2, enough=2, share=0.5, bold=20)",
    "rgp(streak=1, ahead=1)",
    "rgp(streak=2, ahead=3)",
    "fdp(every=1)+rgp(streak=1)",
    "rgp(streak=1)+early-adaptor(window=3)",
    "early-adaptor(window=2, again=0)",
    "early-adaptor(window=5)",
    "tree+rgp(streak=1)",
]


class Meddling:
    """Writes down who leaves; at each launch it sends one region away and fetches another, so that
    lists have holes.
    """

    memory: Any

    def start(self) -> None:
        self.evicted: list[int] = []

    def on_launch(self, launch: int) -> None:
        if self.memory.resident:
            self.memory.evict(sorted(self.memory.resident)[launch % len(self.memory.resident)])
        self.memory.prefetch(launch % self.memory.regions * self.memory.geometry.pages_per_region)

    def on_eviction(self, region: int) -> None:
        self.evicted.append(region)


class Meddler(Meddling, PlacementPolicy):
    """Where data live is decided by somebody who meddles."""


class MeddlingPrefetcher(Meddling, PrefetchPolicy):
    """So is what comes near early."""


def both(
    trace: Any, on: Any, frames: int, policy: str, ahead: str = "none", where: str = "", **how: Any
) -> list[Any]:
    """The run with the twin and the run with the class: everything they left behind.

    Who leaves comes first.
    """
    found = []
    for compiled in (True, False):
        meddler = MeddlingPrefetcher() if where else Meddler()
        simulation = simulation_of(
            trace,
            on,
            frames,
            eviction=policy,
            prefetch=meddler if where else make_prefetch(ahead),
            placement=where or meddler,
            compiled=compiled,
            **how,
        )
        simulation.run()
        if compiled:
            print([type(c.caller).__name__ + c.reason for c in simulation._choices])
        reports = [
            p.report() for p in (simulation.eviction, simulation.prefetch, simulation.placement)
        ]
        memory = {
            n: a.tolist()
            for n, a in simulation.memory._asdict().items()
            if n not in ("own", "requests")
        }
        found.append((meddler.evicted, reports, memory))
    return found


@pytest.mark.parametrize("policy", TWINS)
@settings(deadline=None, max_examples=80, derandomize=True)
@given(traces(), machines(), st.integers(1, 9), st.sampled_from(prefetch.names()))
def test_a_twin_decides_like_its_class(policy, trace, on, frames, ahead):
    twin, python = both(trace, on, frames, policy, ahead)
    assert twin == python


OBSERVING = given(
    traces(),
    observing(),
    st.integers(1, 9),
    st.integers(1, 5),
    st.sampled_from((0, 0, 1, 3)),
    st.data(),
)


@pytest.mark.parametrize("policy", ["lru", "lfu", "cp", "tournament", *OPTIONS])
@settings(deadline=None, max_examples=50, derandomize=True)
@OBSERVING
def test_a_twin_that_observes_decides_like_its_class(
    policy, trace, on, frames, observed, samples, data
):
    ahead = data.draw(st.sampled_from(PREFETCHERS))
    twin, python = both(trace, on, frames, policy, ahead, observed=observed, samples=samples)
    assert twin == python


@pytest.mark.parametrize("ahead", PREFETCHERS)
@settings(deadline=None, max_examples=50, derandomize=True)
@OBSERVING
def test_a_prefetchers_twin_decides_like_its_class(
    ahead, trace, on, frames, observed, samples, data
):
    policy = data.draw(st.sampled_from(["lrm", "lru", "tournament(patience=2)"]))
    twin, python = both(trace, on, frames, policy, ahead, observed=observed, samples=samples)
    assert twin == python


@pytest.mark.parametrize("where", ["acbm", "acbm(threshold=1)", "acbm(threshold=3)"])
@settings(deadline=None, max_examples=50, derandomize=True)
@OBSERVING
def test_a_placements_twin_decides_like_its_class(
    where, trace, on, frames, observed, samples, data
):
    policy = data.draw(st.sampled_from(["lrm", "lru"]))
    twin, python = both(trace, on, frames, policy, where=where, observed=observed, samples=samples)
    assert twin == python


@pytest.mark.parametrize("policy", [*TWINS, *OPTIONS])
@pytest.mark.parametrize(("slots", "frames"), [(1, 37), (8, 37), (64, 5)])
def test_a_twin_decides_like_its_class_in_long_runs(policy, slots, frames):
    """Long enough for every list to turn over many times."""
    rng = np.random.default_rng(3)
    blocks = [reads(rng.zipf(1.2, 12) % (80 * PAGES)) for _ in range(400)]
    trace = Given([Kernel(blocks[:250]), Kernel(blocks[250:], width=2)], [80 * PAGES])
    twin, python = both(trace, machine(slots), frames, policy, "tree")
    assert len(twin[0]) > 400
    assert twin == python


@pytest.mark.parametrize(
    "policy", ["lru", "lfu", "cp", "tournament", "tournament(patience=9, margin=1)"]
)
@pytest.mark.parametrize("ahead", ["fdp(every=2)", "rgp", "fdp(every=2)+rgp"])
def test_prefetchers_twins_decide_like_their_classes_in_long_runs(policy, ahead):
    """Streams through two objects, again and again, and a third that is used all over: regions
    observed, verdicts given.
    """
    rng = np.random.default_rng(5)
    blocks = []
    for sweep in range(6):
        for at in range(0, 40 * PAGES, 4):
            blocks.append(
                reads(
                    [
                        at,
                        *range(40 * PAGES + at, 40 * PAGES + at + 1 + sweep),
                        80 * PAGES + rng.integers(9 * PAGES),
                    ]
                )
            )
    trace = Given(
        [Kernel(blocks[: len(blocks) // 2]), Kernel(blocks[len(blocks) // 2 :])],
        [40 * PAGES, 40 * PAGES, 9 * PAGES],
    )
    twin, python = both(trace, machine(4, batch_faults=8), 30, policy, ahead, observed=12)
    assert twin == python
    books = dict(
        zip(
            np.dtype(simulation_of(trace, machine(), 30).books.dtype).names,
            twin[2]["books"][0],
            strict=True,
        )
    )
    assert books["evictions"] > 100
    assert books["notifications"] > 20
    assert books["pages_prefetched"] > 100


@pytest.mark.parametrize("policy", TWINS)
def test_a_twin_holds_when_regions_come_and_go_without_pressure(policy):
    """Nobody asks for a victim, so nothing tidies up what the regions sent away leave behind; then
    pressure sets in.
    """
    calm = [Kernel([reads([0, PAGES, 2 * PAGES])])] * 60
    busy = [Kernel([reads(range(0, 6 * PAGES, PAGES))])] * 3
    twin, python = both(Given([*calm, *busy, *calm, *busy], [6 * PAGES]), machine(), 4, policy)
    assert twin == python


@pytest.mark.parametrize("policy", TWINS)
def test_a_twin_holds_with_one_region_and_one_frame(policy):
    for trace in (flat([0, 0, 0]), flat([0, 1] * 20), one_block(reads([2] * 3), [3], FLAT)):
        twin, python = both(trace, machine(), 1, policy)
        assert twin == python


@pytest.mark.parametrize("application", ["GMV", "2DC", "BLK", "HEL", "SRK"])
@pytest.mark.parametrize("system", [s for s in SYSTEMS if s != "uvm"])
def test_applications_come_out_the_same(application, system):
    """The whole answer: every count, every part of time, the timeline, what the policies report."""
    ask = grid_of(Setup(scale=1 / 64))[application, system, GRID]
    twin, python = (
        replace(ask, compiled=compiled).answer(cache=False) for compiled in (True, False)
    )
    assert twin.counts["evictions"] > 20
    assert twin.to_json() == python.to_json()


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("ahead", ["rgp(streak=1, ahead=70000)", "fdp+rgp(streak=1, ahead=70000)"])
def test_asking_for_too_much_ends_the_run_with_one_clear_line(compiled, ahead):
    trace = one_block(reads([0, 1, 2]), [70_000], FLAT)
    simulation = simulation_of(
        trace, machine(), 10, prefetch=make_prefetch(ahead), compiled=compiled
    )
    name = simulation.prefetch.name
    line = f"policy '{name}' raised in on_fault(1): {name} must leave at most 65536 requests"
    with pytest.raises(PolicyError, match=re.escape(line)):
        simulation.run()


class NeverTheHead(LRM):
    """A class that inherits from one with a twin and decides otherwise."""

    def victim(self) -> int:
        return self.order.tail


def test_a_subclass_is_not_run_by_its_bases_twin():
    trace = flat(list(range(4)) * 3)
    own, base = (
        simulation_of(trace, machine(), 2, eviction=policy) for policy in (NeverTheHead(), "lrm")
    )
    own.run()
    base.run()
    assert base.books["faults"] == 12
    assert own.books["faults"] < 12
