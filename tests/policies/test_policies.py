"""Each policy on examples worked by hand: who leaves, and in which order."""

from __future__ import annotations

from collections import Counter

import pytest

from tidegate.policies.registries import eviction, placement, prefetch
from tidegate.policies.systems import SYSTEMS
from tidegate.policy import PlacementPolicy
from traces import PAGES, flat, machine, one_block, reads, simulation_of


class Recorder(PlacementPolicy):
    """Gives no advice and writes down who leaves."""

    def start(self) -> None:
        self.evicted: list[int] = []

    def on_eviction(self, region: int) -> None:
        self.evicted.append(region)


def evicted(trace, frames, policy, **how):
    simulation = simulation_of(
        trace, machine(), frames, eviction=policy, placement=Recorder(), **how
    )
    simulation.run()
    return simulation.placement.evicted


# Three frames. 0 1 2 fill them, 0 is used again, then 3, 0, 4, 1, 5.
REQUESTS = [0, 1, 2, 0, 3, 0, 4, 1, 5]
LEAVE = {
    "fifo": [0, 1, 2, 3, 0],  # 3 → 0; 0 → 1; 4 → 2; 1 → 3; 5 → 0
    "lrm": [0, 1, 2, 3, 0],  # one page per region: migrated when it arrives, and never again
    "lru-ideal": [1, 2, 3, 0],  # 3 → 1; 0 hits; 4 → 2; 1 → 3; 5 → 0
    "mru": [2, 3, 4],  # 3 → 2; 0 hits; 4 → 3; 1 hits; 5 → 4
    # 3: 0 has its second chance, 1 goes; 0 hits; 4 → 2; 1: again a chance for 0, 3 goes; 5 → 4
    "clock": [1, 2, 3, 4],
    # 3: 2 is never used again; 4: nor is 0, nor 3, and the lower goes; 5: nor 1, nor 3, nor 4
    "belady": [2, 0, 1],
}


@pytest.mark.parametrize("policy", LEAVE)
@pytest.mark.parametrize("compiled", [True, False])
def test_who_leaves(policy, compiled):
    assert evicted(flat(REQUESTS), 3, policy, compiled=compiled) == LEAVE[policy]


@pytest.mark.parametrize("compiled", [True, False])
def test_lrm_is_about_migrations_into_a_region_and_mru_its_mirror(compiled):
    """Region 0 arrives, 1 arrives, another page of 0 migrates, page 8 of region 1 is used but does
    not migrate.
    """
    trace = one_block(reads([0, PAGES, 1, PAGES, 2 * PAGES]), [3 * PAGES])
    assert evicted(trace, 2, "lrm", compiled=compiled) == [1]
    assert evicted(trace, 2, "mru", compiled=compiled) == [0]
    assert evicted(trace, 2, "fifo", compiled=compiled) == [0]
    assert evicted(trace, 2, "lru-ideal", compiled=compiled) == [0]


@pytest.mark.parametrize("compiled", [True, False])
def test_the_touch_that_a_fault_waited_for_is_no_second_chance(compiled):
    assert evicted(flat([0, 1, 2, 3]), 2, "clock", compiled=compiled) == [0, 1]
    assert evicted(flat([0, 0, 1, 2, 3]), 2, "clock", compiled=compiled) == [1, 0]


def test_random_repeats_with_its_seed_and_differs_with_another():
    trace = flat([i * 7 % 23 for i in range(600)])
    once, again, other = (evicted(trace, 10, f"random(seed={seed})") for seed in (1, 1, 2))
    assert once == again
    assert once != other
    assert evicted(trace, 10, "random") == evicted(trace, 10, "random(seed=0)")


def test_random_chooses_all_alike():
    """Of 10 frames each victim is any with 1/10: where in the order of arrival it stands is
    uniform.
    """
    trace = flat([i * 7 % 23 for i in range(23 * 400)])
    counts = Counter(evicted(trace, 10, "random"))
    assert set(counts) == set(range(23))
    mean = sum(counts.values()) / 23
    assert all(0.8 * mean < n < 1.2 * mean for n in counts.values())


def test_what_the_issue_asks_for_is_there():
    assert {"lrm", "lru-ideal", "fifo", "mru", "random", "clock", "belady"} <= set(eviction.names())
    assert {"none", "tree", "region"} <= set(prefetch.names())
    assert {"um", "host"} <= set(placement.names())
    uvm = SYSTEMS["uvm"]
    assert (uvm.eviction, uvm.prefetch, uvm.placement) == ("lrm", "tree", "um")


@pytest.mark.parametrize(
    "family", [eviction, prefetch, placement], ids=lambda family: family.family
)
def test_every_policy_says_what_it_does_and_can_be_made_by_name(family):
    for name in family.names():
        policy = family.make(name)
        assert policy.name == name
        assert (type(policy).__doc__ or "").strip()
        assert all(option.help for option in policy.options().values())
