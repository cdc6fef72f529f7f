"""Observation: samples, notifications, costs and adaptation."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.machine.machine import Machine
from tidegate.policies.interface.policy import PlacementPolicy
from tidegate.policy import EvictionPolicy, Samples
from tidegate.simulation.gpu.memory import Memory
from traces import (
    FLAT,
    PAGES,
    SMALL,
    Given,
    Kernel,
    machine,
    one_block,
    reads,
    run_of,
    simulation_of,
    writes,
)
from worlds import machines, traces

pytestmark = pytest.mark.closed_form


def observing(on: Machine | None = None, **constants: object) -> Machine:
    """A machine whose observation costs round numbers."""
    on = on or machine()
    return dataclasses.replace(
        on, driver=dataclasses.replace(on.driver, sample=8192.0, notification=16384.0, **constants)
    )


def pages_of(region: int) -> range:
    return range(region * PAGES, (region + 1) * PAGES)


class WatchOne(EvictionPolicy):
    """FIFO that observes region 0 whenever it is resident and not observed."""

    sees = Samples(regions=4)

    def start(self) -> None:
        self.noticed: list[int] = []

    def on_fault(self, region: int) -> None:
        if region not in self.order:
            self.order.move_to_tail(region)

    def on_eviction(self, region: int) -> None:
        self.order.remove(region)

    def on_notification(self, region: int) -> None:
        self.noticed.append(region)
        assert region not in self.observed  # it has ceased to be observed

    def observe(self) -> int | None:
        return (
            0
            if 0 in self.order and 0 not in self.observed and not self.memory.is_served(0)
            else None
        )

    def victim(self) -> int:
        return self.order.head


def test_the_next_use_of_an_observed_region_is_noticed_once() -> None:
    # region 0 comes, region 1 comes (0 is observed now), all of 0 is used: its one sampled page is
    # noticed by the time region 2 comes
    policy = WatchOne()
    run = run_of(
        one_block(reads([p for r in (0, 1, 0, 2) for p in pages_of(r)]), [3 * PAGES]),
        observing(),
        4,
        eviction=policy,
        prefetch="region",
    )
    assert policy.noticed == [0]
    # it may be observed again afterwards
    assert run.counts["observations"] - run.counts["notifications"] in (0, 1)
    assert run.counts["pages_home"] == 1
    assert run.counts["remote_touches"] == 1
    assert run.counts["faults"] == 3


def test_a_region_that_is_not_used_is_not_noticed() -> None:
    policy = WatchOne()
    run = run_of(
        one_block(reads([*pages_of(0), *pages_of(1), *pages_of(2)]), [3 * PAGES]),
        observing(),
        4,
        eviction=policy,
        prefetch="region",
    )
    assert policy.noticed == []
    assert run.counts["notifications"] == run.counts["pages_home"] == 0
    assert run.counts["pages_sampled"] == 1


def test_observing_costs_what_the_machine_says() -> None:
    """One slot, so the driver is always waited for; the same trace without observation is the
    yardstick.
    """
    on = observing()
    trace = one_block(reads([*pages_of(0), *pages_of(1)]), [2 * PAGES])
    plain = run_of(trace, on, 4, eviction="fifo", prefetch="region")
    watched = run_of(trace, on, 4, eviction=WatchOne(), prefetch="region")
    page_out = SMALL.page / on.link.outward
    assert watched.time - plain.time == pytest.approx(on.driver.sample + page_out)
    assert watched.parts["policy_overhead"] == pytest.approx(on.driver.sample + page_out)


def test_an_evicted_region_leaves_no_sample_behind() -> None:
    trace = one_block(reads([p for r in (0, 1, 2, 3, 0) for p in pages_of(r)]), [4 * PAGES])
    simulation = simulation_of(trace, observing(), 2, eviction=WatchOne(), prefetch="region")
    simulation.run()
    observed_now = simulation.memory.observed.nonzero()[0]
    assert set(observed_now) <= set(simulation.memory.resident.nonzero()[0])


class CountEverything(PlacementPolicy):
    """ObservUVM's microbenchmark: everything is far and mapped, and counters notify after
    ``accesses``.
    """

    sees = Samples()
    accesses = 4

    def start(self) -> None:
        self.noticed: set[int] = set()
        self.memory.count_remote(self.accesses)

    def on_launch(self, launch: int) -> None:
        if launch == 0:
            for o in self.memory.objects:
                self.memory.advise(o.first_page, o.pages, "far")

    def on_notification(self, region: int) -> None:
        self.noticed.add(region)


@pytest.mark.parametrize("regions", [1, 16, 255, 256, 257, 400])
def test_notifications_grow_with_regions_until_the_counters_run_out(regions: int) -> None:
    """Figure 3: linear, then flat at 256.

    All regions get their first access before any gets its second.
    """
    touch = reads([r * PAGES for r in range(regions)], bytes=128)
    # while these cross the link, the driver serves the last notifications
    later = reads([0] * 100)
    trace = Given([Kernel([touch * 4 + later])], [regions * PAGES])
    policy = CountEverything()
    # a notification is handled late, so that no counter is freed and given to another region
    # meanwhile
    run_of(trace, observing(machine(), counters=256), 4, placement=policy)
    assert len(policy.noticed) == min(regions, 256)


class CountPages(CountEverything):
    """The same by pages: a notification names the page."""

    def start(self) -> None:
        self.noticed = set()
        self.memory.count_remote(self.accesses, 1)


@pytest.mark.parametrize(("policy", "granules"), [(CountEverything, {0}), (CountPages, {1, 3, 4})])
def test_a_counter_counts_for_a_granule(policy: type, granules: set[int]) -> None:
    """Pages 1, 3 and 4 have four accesses or more, page 2 has three; all are in region 0."""
    touches = reads([1, 3, 2] * 3 + [1, 3], bytes=128) + reads([4], bytes=0) * 100
    used = policy()
    run_of(one_block(touches, [PAGES]), observing(), 4, placement=used)
    assert used.noticed == granules


class CountAndName(CountEverything):
    """The same by regions: a notification names each page that had some of the accesses."""

    def start(self) -> None:
        self.noticed = set()
        self.memory.count_remote(self.accesses, 0, 1)


def test_a_counter_may_name_the_pages_that_were_accessed() -> None:
    later = reads([PAGES], bytes=0) * 100  # of region 1, while the driver serves the others
    touches = reads([1, 3, 1, 3], bytes=128) + later + reads([5], bytes=128)
    used = CountAndName()
    run_of(one_block(touches, [2 * PAGES]), observing(), 4, placement=used)
    assert used.noticed == {1, 3, PAGES}


def test_what_thread_blocks_share_is_counted_for_each() -> None:
    """Two touches by two thread blocks each are four accesses over the link."""
    later = reads([2 * PAGES], bytes=0) * 100  # of region 2, while the driver serves the others
    touches = reads([0, 0], bytes=128) + reads([PAGES], bytes=128) + later
    kernel = Kernel([touches], told={"sharing": (2.0,)})
    used = CountEverything()
    run_of(Given([kernel], [3 * PAGES]), observing(), 4, placement=used)
    assert used.noticed == {0, 2}


def test_samples_double_while_evicted_regions_come_straight_back() -> None:
    """A cycle over three regions in two frames: every evicted region is back at once (V-D)."""
    cycle = [p for _ in range(40) for r in range(3) for p in pages_of(r)]
    simulation = simulation_of(
        one_block(reads(cycle), [3 * PAGES]), observing(), 2, eviction="lru", prefetch="region"
    )
    simulation.run()
    assert simulation.books[0]["samples"] == PAGES // 2


def test_samples_stay_at_one_while_evicted_regions_stay_away() -> None:
    stream = [p for r in range(60) for p in pages_of(r)]
    simulation = simulation_of(
        one_block(reads(stream), [60 * PAGES]), observing(), 4, eviction="lru", prefetch="region"
    )
    simulation.run()
    assert simulation.books[0]["samples"] == 1


def test_a_fixed_number_of_samples_is_kept() -> None:
    cycle = [p for _ in range(40) for r in range(3) for p in pages_of(r)]
    simulation = simulation_of(
        one_block(reads(cycle), [3 * PAGES]),
        observing(),
        2,
        eviction="lru",
        prefetch="region",
        samples=2,
    )
    simulation.run()
    b = simulation.books[0]
    assert b["samples"] == 2
    assert b["pages_sampled"] == 2 * b["observations"]


class Bounded(EvictionPolicy):
    """Observes as much as it can, and checks that the limit holds."""

    sees = Samples(regions=3)

    def start(self) -> None:
        self.most = 0

    def on_fault(self, region: int) -> None:
        if region not in self.order:
            self.order.move_to_tail(region)
        self.most = max(self.most, sum(r in self.observed for r in self.order))

    def on_eviction(self, region: int) -> None:
        self.order.remove(region)

    def victim(self) -> int:
        return self.order.head

    def observe(self) -> int | None:
        return next((r for r in self.order if r not in self.observed), None)


def test_no_more_regions_are_observed_than_declared() -> None:
    policy = Bounded()
    cycle = [p for _ in range(5) for r in range(12) for p in pages_of(r)]
    run_of(
        one_block(reads(cycle), [12 * PAGES]), observing(), 8, eviction=policy, prefetch="region"
    )
    assert policy.most == 3


def sampled_pages(memory: Memory) -> int:
    return int((memory.sampled > 0).sum())


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    trace=traces(),
    on=machines(),
    frames=st.integers(1, 6),
    eviction=st.sampled_from(["lru", "lfu", "cp", "tournament"]),
    prefetch=st.sampled_from(
        ["none", "tree", "fdp(every=1)", "fdp(every=1)+rgp(streak=1)", "early-adaptor"]
    ),
    placement=st.sampled_from(["um", "acbm(threshold=4)", "acbm(threshold=4, granularity=64KiB)"]),
)
def test_books_balance_with_observation_on_anything(
    trace, on, frames, eviction, prefetch, placement
) -> None:
    """run() checks the books itself; here also that a second run is the same, bit for bit."""
    first = run_of(
        trace,
        observing(on, counters=8),
        frames,
        eviction=eviction,
        prefetch=prefetch,
        placement=placement,
    )
    again = run_of(
        trace,
        observing(on, counters=8),
        frames,
        eviction=eviction,
        prefetch=prefetch,
        placement=placement,
    )
    assert (first.counts, first.parts) == (again.counts, again.parts)


def test_a_hot_region_among_a_stream_stays_when_observed() -> None:
    """Region 0 is used after every other region.

    Migration order forgets that; observation does not.
    """
    sequence = [p for r in range(1, 40) for p in (*pages_of(r), *pages_of(0))]
    trace = one_block(writes(sequence), [40 * PAGES])
    lrm = run_of(trace, observing(), 6, eviction="lrm", prefetch="region")
    lru = run_of(trace, observing(), 6, eviction="lru", prefetch="region")
    assert lru.counts["evictions"] == 40 - 6  # each region once, the hot one never
    assert lrm.counts["evictions"] > lru.counts["evictions"]


def test_notifications_of_one_turn_are_served_in_order() -> None:
    times = [0.0]
    trace = one_block(
        reads([p for _ in range(3) for r in range(4) for p in pages_of(r)]), [4 * PAGES]
    )
    run = run_of(trace, observing(), 4, eviction="lru", prefetch="region")
    times += run.timeline["time"].to_list()
    assert all(a <= b for a, b in pairwise(times))


class WatchAll(EvictionPolicy):
    """FIFO that observes every region."""

    sees = Samples(regions=4)

    def on_fault(self, region: int) -> None:
        self.order.move_to_tail(region)

    def on_eviction(self, region: int) -> None:
        self.order.remove(region)

    def observe(self) -> int | None:
        some = (r for r in self.order if r not in self.observed and not self.memory.is_served(r))
        return next(some, None)

    def victim(self) -> int:
        return self.order.head


def test_notifications_are_served_in_batches() -> None:
    """Four slots use four observed regions at once: the driver serves the first use alone and the
    three that come meanwhile together. Regions have one page here, which can be sampled.
    """
    together = Kernel([reads([r]) for r in range(4)], width=4)
    alone = [Kernel([reads([r])]) for r in range(4, 9)]
    trace = Given([together, *alone[:4], together, alone[4]], [9], FLAT)
    times = {}
    for batch in (256, 3, 2, 1):
        on = observing(machine(slots=4), batch_notifications=batch)
        run = run_of(trace, on, 9, eviction=WatchAll(), prefetch="none")
        assert (run.counts["notifications"], run.counts["observations"]) == (4, 8)
        times[batch] = run.time / on.driver.notification
    batches = {256: 1 + 1, 3: 1 + 1, 2: 1 + 2, 1: 1 + 3}
    for batch, time in times.items():
        assert time - times[256] == pytest.approx(batches[batch] - batches[256])
