"""A compiled twin decides what its Python class decides: same victims, same books, same time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.policies import PlacementPolicy
from tidegate.policies.eviction.lrm import LRM
from tidegate.policies.registries import eviction, placement, prefetch
from traces import FLAT, PAGES, Given, Kernel, flat, machine, one_block, reads, simulation_of
from worlds import machines, traces

TWINS = [name for name in eviction.names() if eviction.find(name).compiled is not None]


class Meddler(PlacementPolicy):
    """Writes down who leaves; at each launch it sends one region away and fetches another, so that lists have holes."""

    def start(self) -> None:
        self.evicted: list[int] = []

    def on_launch(self, launch: int) -> None:
        if self.memory.resident:
            self.memory.evict(sorted(self.memory.resident)[launch % len(self.memory.resident)])
        self.memory.prefetch(launch % self.memory.regions * self.memory.geometry.pages_per_region)

    def on_eviction(self, region: int) -> None:
        self.evicted.append(region)


def both(trace: Any, on: Any, frames: int, policy: str, ahead: str = "none") -> list[Any]:
    """The run with the twin and the run with the class: everything they left behind."""
    found = []
    for compiled in (True, False):
        simulation = simulation_of(
            trace, on, frames, eviction=policy, prefetch=ahead, placement=Meddler(), compiled=compiled
        )
        simulation.run()
        found.append((simulation.placement.evicted, simulation.books.tolist(), simulation.memory.page_state.tolist()))
    return found


def test_the_usual_policies_have_twins():
    assert {"lrm", "fifo", "mru", "clock", "lru-ideal", "belady"} <= set(TWINS)
    assert not [name for name in prefetch.names() if prefetch.find(name).compiled]
    assert not [name for name in placement.names() if placement.find(name).compiled]


@pytest.mark.parametrize("policy", TWINS)
@settings(deadline=None, max_examples=80, derandomize=True)
@given(traces(), machines(), st.integers(1, 9), st.sampled_from(prefetch.names()))
def test_a_twin_decides_like_its_class(policy, trace, on, frames, ahead):
    twin, python = both(trace, on, frames, policy, ahead)
    assert twin == python


@pytest.mark.parametrize("policy", TWINS)
@pytest.mark.parametrize(("slots", "frames"), [(1, 37), (8, 37), (64, 5)])
def test_a_twin_decides_like_its_class_in_long_runs(policy, slots, frames):
    """Long enough for every list to turn over many times."""
    rng = np.random.default_rng(3)
    blocks = [reads(rng.zipf(1.2, 12) % (80 * PAGES)) for _ in range(400)]
    trace = Given([Kernel(blocks[:250]), Kernel(blocks[250:], width=2)], [80 * PAGES])
    twin, python = both(trace, machine(slots), frames, policy, "tree")
    assert len(twin[0]) > 400
    assert twin == python


@pytest.mark.parametrize("policy", TWINS)
def test_a_twin_holds_when_regions_come_and_go_without_pressure(policy):
    """Nobody asks for a victim, so nothing tidies up what the regions sent away leave behind; then pressure sets in."""
    calm = [Kernel([reads([0, PAGES, 2 * PAGES])])] * 60
    busy = [Kernel([reads(range(0, 6 * PAGES, PAGES))])] * 3
    twin, python = both(Given([*calm, *busy, *calm, *busy], [6 * PAGES]), machine(), 4, policy)
    assert twin == python


@pytest.mark.parametrize("policy", TWINS)
def test_a_twin_holds_with_one_region_and_one_frame(policy):
    for trace in (flat([0, 0, 0]), flat([0, 1] * 20), one_block(reads([2] * 3), [3], FLAT)):
        twin, python = both(trace, machine(), 1, policy)
        assert twin == python


class NeverTheHead(LRM):
    """A class that inherits from one with a twin and decides otherwise."""

    def victim(self) -> int:
        return self.order.tail


def test_a_subclass_is_not_run_by_its_bases_twin():
    trace = flat(list(range(4)) * 3)
    own, base = (simulation_of(trace, machine(), 2, eviction=policy) for policy in (NeverTheHead(), "lrm"))
    own.run()
    base.run()
    assert base.books["faults"] == 12
    assert own.books["faults"] < 12
