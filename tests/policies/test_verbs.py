"""The verbs: prefetch, evict, advise and the threshold do what they say, when they say it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tidegate.policies.prefetch.together import make_prefetch
from tidegate.policy import PlacementPolicy, PrefetchPolicy
from traces import (
    PAGE,
    PAGES,
    Given,
    Kernel,
    machine,
    one_block,
    reads,
    run_of,
    simulation_of,
    writes,
)

ON = machine()
IN, OUT, UNMAP = (
    PAGE / ON.link.inward,
    PAGE / ON.link.outward,
    ON.driver.unmap_per_kib * PAGE / 1024,
)
LAUNCH, TOUCH = ON.near.launch_overhead, PAGE / ON.near.bandwidth


class AtLaunch(PlacementPolicy):
    """Does one thing at each launch."""

    def __init__(self, *does: Callable[[Any], None]):
        super().__init__()
        self.does = does

    def on_launch(self, launch: int) -> None:
        if launch < len(self.does):
            self.does[launch](self.memory)


def nothing(memory: Any) -> None: ...


def approx(value: float) -> Any:
    return pytest.approx(value, rel=1e-9)


def test_what_is_prefetched_at_a_launch_is_there_when_it_begins():
    trace = one_block(reads(range(2 * PAGES)), [2 * PAGES])
    run = run_of(trace, ON, 2, placement=AtLaunch(lambda m: m.prefetch(0, 2 * PAGES)))
    assert run.counts["faults"] == run.counts["batches"] == 0
    assert (
        run.counts["pages_in"] == run.counts["pages_prefetched"] == run.counts["hits"] == 2 * PAGES
    )
    # two frames: a turn takes half of them, so that nothing is sent away that was just brought
    turns = 2
    assert len(run.timeline) == 1 + turns
    # no batch overhead: nobody faulted
    assert run.parts["fault_handling"] == approx(2 * (ON.driver.region_overhead + PAGES * UNMAP))
    assert run.parts["transfer_in"] == approx(2 * (ON.link.run_overhead + PAGES * IN))
    assert run.launches["start"][0] == approx(run.time - 2 * PAGES * TOUCH)


def test_a_prefetch_of_what_is_near_or_kept_far_is_nothing():
    def both(m: Any) -> None:
        m.advise(PAGES, 2, "far")
        m.prefetch(0, PAGES + 2)

    trace = Given([Kernel([reads(range(PAGES))]), Kernel([reads([PAGES])])], [2 * PAGES])
    run = run_of(trace, ON, 2, placement=AtLaunch(nothing, both))
    assert run.counts["pages_prefetched"] == 0
    assert run.counts["remote_touches"] == 1


def test_a_prefetch_reaches_over_the_gap_between_objects():
    run = run_of(
        one_block(reads([0]), [3, 2]), ON, 2, placement=AtLaunch(lambda m: m.prefetch(0, PAGES + 2))
    )
    assert run.counts["pages_in"] == 5
    assert run.counts["faults"] == 0


def test_prefetched_runs_are_counted_by_what_is_missing():
    """Pages 2 and 5 are near already: three runs are left."""
    trace = Given([Kernel([reads([2, 5])]), Kernel([reads(range(PAGES))])], [PAGES])
    simulation = simulation_of(
        trace, ON, 1, placement=AtLaunch(nothing, lambda m: m.prefetch(0, PAGES))
    )
    simulation.run()
    books = simulation.books[0]
    assert (books["copies_in"], books["pages_in"], books["pages_prefetched"]) == (
        2 + 3,
        PAGES,
        PAGES - 2,
    )


def test_a_prefetch_from_a_fault_runs_beside_the_program_and_takes_turns_with_faults():
    """Each fault asks for the next region; it comes in a turn of its own after the fault's."""

    class Next(PrefetchPolicy):
        def on_fault(self, region: int) -> None:
            if region + 1 < self.memory.regions:
                self.memory.prefetch((region + 1) * PAGES, PAGES)

    trace = one_block(reads(range(4 * PAGES)), [4 * PAGES])
    run = run_of(trace, ON, 4, prefetch=Next())
    assert run.counts["faults"] == run.counts["batches"]
    assert run.counts["pages_prefetched"] > PAGES
    assert run.counts["pages_in"] == 4 * PAGES
    assert len(run.timeline) > run.counts["batches"]  # turns beside the batches


def test_what_is_evicted_at_a_launch_is_gone_and_paid_for_before_it_begins():
    trace = Given([Kernel([writes(range(PAGES))]), Kernel([reads(range(PAGES))])], [PAGES])
    run = run_of(trace, ON, 1, placement=AtLaunch(nothing, lambda m: m.evict(0)))
    assert run.counts["evictions"] == 1
    assert run.counts["decisions"] == 0
    assert run.counts["faults"] == 2 * PAGES
    assert run.parts["transfer_out"] == approx(PAGES * OUT)


def test_an_eviction_that_is_asked_for_twice_happens_once():
    def twice(m: Any) -> None:
        m.evict(0)
        m.evict(0)

    trace = Given([Kernel([reads([0])])] * 2, [PAGES])
    assert run_of(trace, ON, 1, placement=AtLaunch(nothing, twice)).counts["evictions"] == 1


def test_a_region_is_not_sent_away_in_the_turn_that_serves_it():
    class Ungrateful(PlacementPolicy):
        def on_fault(self, region: int) -> None:
            if self.memory.is_resident(region):
                self.memory.evict(region)

    run = run_of(one_block(reads([0, 1, 2]), [PAGES]), ON, 1, placement=Ungrateful())
    assert run.counts["evictions"] == 0
    assert run.counts["faults"] == 3


def test_an_eviction_asked_for_in_a_fault_makes_room_but_not_for_that_fault():
    """The victim of the third fault is chosen before the policy hears of it; the fourth finds the
    frame it freed.
    """

    class Tidy(PlacementPolicy):
        def on_fault(self, region: int) -> None:
            if region == 2:
                self.memory.evict(1)

    run = run_of(
        one_block(reads([0, PAGES, 2 * PAGES, 3 * PAGES]), [4 * PAGES]), ON, 2, placement=Tidy()
    )
    assert run.counts["evictions"] == 2
    assert run.counts["decisions"] == 1


def test_an_eviction_asked_for_when_the_tree_prefetches_happens_in_that_turn():
    class Away(PrefetchPolicy):
        def start(self) -> None:
            self.memory.set_prefetch_threshold(0)

        def on_prefetch(self, region: int) -> None:
            if region == 1:
                self.memory.evict(0)

    run = run_of(one_block(reads([0, PAGES]), [2 * PAGES]), ON, 2, prefetch=Away())
    assert run.counts["evictions"] == 1
    assert run.parts["transfer_out"] == approx(PAGES * OUT)


def test_advice_can_be_taken_back():
    trace = Given([Kernel([reads(range(PAGES))])] * 3, [PAGES])
    advice = [lambda m: m.advise(0, PAGES, "far"), lambda m: m.advise(0, PAGES, None)]
    run = run_of(trace, ON, 1, placement=AtLaunch(*advice))
    assert run.counts["remote_touches"] == run.counts["faults"] == run.counts["hits"] == PAGES


def test_what_is_near_stays_near_when_it_is_advised_to_be_far_until_it_is_evicted():
    def away(m: Any) -> None:
        m.advise(0, PAGES, "far")
        m.evict(0)

    trace = Given([Kernel([reads(range(PAGES))])] * 3, [PAGES])
    run = run_of(
        trace, ON, 1, placement=AtLaunch(nothing, lambda m: m.advise(0, PAGES, "far"), away)
    )
    assert run.launches["faults"].to_list() == [PAGES, 0, 0]
    assert run.counts["hits"] == run.counts["remote_touches"] == PAGES


@pytest.mark.parametrize(("percent", "faults"), [(0, 1), (51, 4), (101, PAGES)])
def test_the_threshold_can_be_set_at_any_time(percent, faults):
    """Until the second launch there is no tree."""
    trace = Given([Kernel([reads([PAGES])]), Kernel([reads(range(PAGES))])], [2 * PAGES])
    run = run_of(
        trace, ON, 2, placement=AtLaunch(nothing, lambda m: m.set_prefetch_threshold(percent))
    )
    assert run.launches["faults"].to_list() == [1, faults]


def test_what_is_asked_for_at_the_start_comes_with_the_first_launch():
    class Early(PrefetchPolicy):
        def start(self) -> None:
            self.memory.prefetch(0, PAGES)

    trace = one_block(reads([PAGES] * 10_000 + list(range(PAGES))), [2 * PAGES])
    run = run_of(trace, machine(launch_overhead=0.0), 2, prefetch=Early())
    assert run.counts["faults"] == 1
    assert run.counts["pages_prefetched"] == PAGES


def test_what_is_about_to_be_prefetched_is_shown_page_by_page():
    class Look(PrefetchPolicy):
        def start(self) -> None:
            self.seen: list[list[int]] = []
            self.memory.set_prefetch_threshold(0)

        def on_prefetch(self, region: int) -> None:
            self.seen.append(np.flatnonzero(self.memory.prefetched(region)).tolist())

    policy = Look()
    run = run_of(one_block(reads([3]), [PAGES]), ON, 1, prefetch=policy)
    # all but the one that faulted
    assert policy.seen == [[page for page in range(PAGES) if page != 3]]
    assert run.counts["pages_prefetched"] == PAGES - 1


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    "spelt", ["rgp(streak=1, ahead=4)+none", "stop-when-full(of=rgp(streak=1, ahead=4))"]
)
def test_a_prefetcher_within_another_is_told_no_sooner_than_alone(spelt: str, compiled: bool):
    """A launch waits for what was asked for at it; a policy that only hands launches on to others
    asks for nothing.
    """
    trace = Given([Kernel([reads([0, 1])]), Kernel([reads([0, 1, PAGES])])], [10 * PAGES])
    alone, within = (
        run_of(trace, ON, 10, prefetch=make_prefetch(spec), compiled=compiled)
        for spec in ("rgp(streak=1, ahead=4)", spelt)
    )
    assert alone.counts["pages_prefetched"] > 0
    assert (within.counts, within.parts) == (alone.counts, alone.parts)
