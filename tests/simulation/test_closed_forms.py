"""Closed forms: faults, evictions, bytes and time of simple patterns, by formula from the machine's
constants.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from tidegate.experiments import Run
from tidegate.policy import EvictionPolicy, PlacementPolicy
from tidegate.simulation.gpu.memory import QUANTUM
from tidegate.trace.geometry import Geometry
from traces import (
    FLAT,
    PAGE,
    PAGES,
    Given,
    Kernel,
    Touch,
    flat,
    machine,
    one_block,
    reads,
    run_of,
    simulation_of,
    writes,
)

pytestmark = pytest.mark.closed_form

ONE = machine()
NEAR, LINK, DRIVER = ONE.near, ONE.link, ONE.driver

# Costs with one slot
TOUCH = PAGE / NEAR.bandwidth
IN, OUT = PAGE / LINK.inward, PAGE / LINK.outward  # one page over the link
UNMAP = DRIVER.unmap_per_kib * PAGE / 1024  # one page, at its first migration
SERVE = DRIVER.batch_overhead + DRIVER.region_overhead  # a batch in one region


def cyclic(regions: int, passes: int, write: bool = False) -> Given:
    """Passes over all pages of some regions, a launch each."""
    return Given([Kernel([reads(range(regions * PAGES), write=write)])] * passes, [regions * PAGES])


def approx(value: float) -> object:
    return pytest.approx(value, rel=1e-9, abs=1e-6)


# One slot: patterns


@pytest.mark.parametrize("policy", ["lrm", "fifo", "lru-ideal", "clock"])
@pytest.mark.parametrize(("regions", "frames", "passes"), [(6, 4, 3), (9, 8, 2), (5, 1, 4)])
def test_a_loop_larger_than_memory_faults_all_in_every_pass(policy, regions, frames, passes):
    trace = cyclic(regions, passes)
    visits = regions * passes
    out = (visits - frames) * PAGES
    for prefetch, faults in (("region", visits), ("none", visits * PAGES)):
        run = run_of(trace, ONE, frames, eviction=policy, prefetch=prefetch)
        assert run.counts["faults"] == run.counts["raw_faults"] == run.counts["batches"] == faults
        assert run.counts["evictions"] == run.counts["decisions"] == visits - frames
        assert run.counts["pages_prefetched"] == visits * PAGES - faults
        assert run.counts["hits"] == visits * PAGES - faults
        assert run.summary["bytes_in"] == visits * PAGES * PAGE
        assert run.summary["bytes_out"] == out * PAGE
        assert run.parts == {
            "compute": approx(passes * NEAR.launch_overhead + visits * PAGES * TOUCH),
            "fault_handling": approx(faults * SERVE + regions * PAGES * UNMAP),
            "transfer_in": approx(faults * LINK.run_overhead + visits * PAGES * IN),
            "transfer_out": approx(out * OUT),
            "remote_access": 0,
            "policy_overhead": 0,
        }
        assert run.time == approx(sum(run.parts.values()))
        assert run.time == approx(run.launches["end"][-1])


@pytest.mark.parametrize("policy", ["lrm", "fifo", "lru-ideal", "clock", "mru", "random", "belady"])
def test_what_fits_faults_once(policy):
    for frames in (5, 6):
        run = run_of(cyclic(5, 4), ONE, frames, eviction=policy, prefetch="region")
        assert run.counts["faults"] == run.counts["frames_peak"] == 5
        assert run.counts["evictions"] == run.summary["bytes_out"] == 0
        assert run.time == approx(
            4 * NEAR.launch_overhead
            + 20 * PAGES * TOUCH
            + 5 * (SERVE + LINK.run_overhead + PAGES * (IN + UNMAP))
        )


@pytest.mark.parametrize(
    ("regions", "frames", "passes"), [(6, 4, 3), (9, 8, 5), (5, 1, 4), (7, 2, 3)]
)
def test_mru_keeps_all_frames_of_a_loop_but_one(regions, frames, passes):
    """The first frames - 1 regions stay; all others go through the last frame, in every pass."""
    run = run_of(cyclic(regions, passes), ONE, frames, eviction="mru", prefetch="region")
    assert run.counts["faults"] == regions + (passes - 1) * (regions - frames + 1)
    assert run.counts["evictions"] == run.counts["faults"] - frames


@pytest.mark.parametrize(("regions", "frames", "passes"), [(6, 4, 5), (9, 8, 5), (7, 2, 9)])
def test_belady_hits_frames_minus_one_of_each_regions_minus_one_in_a_loop(regions, frames, passes):
    run = run_of(cyclic(regions, passes), ONE, frames, eviction="belady", prefetch="region")
    later = regions * (passes - 1)
    hits = sum(i % (regions - 1) < frames - 1 for i in range(later))
    assert run.counts["faults"] == regions * passes - hits


@pytest.mark.parametrize("prefetch", ["none", "region", "tree"])
def test_a_stream_brings_every_page_once(prefetch):
    run = run_of(cyclic(10, 1), ONE, 4, prefetch=prefetch)
    # the tree doubles: pages 0, 1, 2 and 4 of eight fault, the others come with them
    faults = {"none": 10 * PAGES, "region": 10, "tree": 10 * 4}[prefetch]
    assert run.counts["faults"] == run.counts["batches"] == faults
    assert run.counts["pages_in"] == 10 * PAGES
    assert run.counts["evictions"] == 6
    assert run.counts["pages_unused"] == 0
    assert run.parts["fault_handling"] == approx(faults * SERVE + 10 * PAGES * UNMAP)
    # Page 2's companion is page 3, page 4's are 5, 6 and 7: a run each
    assert run.parts["transfer_in"] == approx(faults * LINK.run_overhead + 10 * PAGES * IN)


def test_tree_prefetch_doubles_along_a_region_of_64_kib_pages():
    """At 51 %, 2 of 2, 3 of 4, 5 of 8, 9 of 16 and 17 of 32 qualify: a scan faults on pages 0, 1,
    2, 4, 8 and 16.
    """
    trace = one_block(reads(range(3 * 32)), [3 * 32], Geometry())
    assert run_of(trace, ONE, 3, prefetch="tree").counts["faults"] == 3 * 6


def test_a_region_of_one_page_or_a_short_object_takes_a_frame_and_moves_what_there_is():
    trace = one_block(reads([0, PAGES]), [3, 1])
    run = run_of(trace, ONE, 1, prefetch="region")
    assert run.counts["pages_in"] == 4
    assert run.counts["evictions"] == 1
    assert run.counts["pages_written_back"] == 3
    assert run.counts["pages_unused"] == 2
    assert run.objects.select("pages_in", "faults", "evictions", "pages_near").rows() == [
        (3, 1, 1, 0),
        (1, 1, 0, 1),
    ]


def test_a_hot_page_is_handled_once_and_then_costs_its_bandwidth():
    run = run_of(one_block(reads([3] * 1000), [PAGES]), ONE, 1)
    assert (run.counts["faults"], run.counts["hits"]) == (1, 999)
    assert run.time == approx(
        NEAR.launch_overhead + 1000 * TOUCH + SERVE + UNMAP + LINK.run_overhead + IN
    )


@pytest.mark.parametrize("frames", [2, 3, 7])
@pytest.mark.parametrize("length", [1, 6, 50])
def test_a_hot_region_beside_a_stream(frames, length):
    """hot, new, hot, new, …: policies that see uses keep the hot region; those that see arrivals
    lose it after ``frames`` arrivals.
    """
    trace = flat([region for new in range(1, length + 1) for region in (0, new)])
    for policy in ("lru-ideal", "clock", "belady", "mru"):
        assert run_of(trace, ONE, frames, eviction=policy).counts["faults"] == length + 1
    for policy in ("fifo", "lrm"):
        assert run_of(trace, ONE, frames, eviction=policy).counts["faults"] == length + math.ceil(
            length / frames
        )


def test_lrm_counts_migrations_into_a_region_and_fifo_its_arrival():
    """Region 0 arrives first but a page is migrated into it last: LRM then evicts region 1, FIFO
    region 0.
    """
    trace = one_block(reads([0, PAGES, 1, 2 * PAGES, 0]), [3 * PAGES])
    assert run_of(trace, ONE, 2, eviction="lrm").counts["faults"] == 4
    assert run_of(trace, ONE, 2, eviction="fifo").counts["faults"] == 5


# One slot: victims


def test_every_near_page_is_written_back_and_with_dirty_only_what_was_written():
    touches = [Touch(p, write=p % 3 == 0) for p in range(6 * PAGES)]
    trace = one_block(touches, [6 * PAGES])
    gone = 4 * PAGES
    whole, dirty = (run_of(trace, ONE, 2, dirty_only=d) for d in (False, True))
    assert whole.counts["pages_written_back"] == whole.counts["pages_evicted"] == gone
    assert dirty.counts["pages_written_back"] == len(range(0, gone, 3))
    assert dirty.counts["pages_evicted"] == gone
    assert whole.parts["transfer_out"] == approx(gone * OUT)
    assert dirty.parts["transfer_out"] == approx(len(range(0, gone, 3)) * OUT)
    assert whole.time - dirty.time == approx((gone - len(range(0, gone, 3))) * OUT)


def test_a_page_is_clean_again_when_it_comes_back():
    trace = one_block([*writes([0]), *reads([1, 0, 1])], [2], FLAT)
    run = run_of(trace, ONE, 1, dirty_only=True)
    assert run.counts["evictions"] == 3
    assert run.counts["pages_written_back"] == 1


def test_pages_prefetched_for_nothing_are_counted_when_they_leave():
    trace = one_block(reads([0, 1, PAGES, 2 * PAGES]), [3 * PAGES])
    run = run_of(trace, ONE, 1, prefetch="region")
    assert run.counts["pages_unused"] == (PAGES - 2) + (PAGES - 1)


def test_the_unmapping_is_paid_once_per_page():
    once, often = (run_of(cyclic(4, passes), ONE, 2, prefetch="region") for passes in (1, 5))
    assert once.parts["fault_handling"] == approx(4 * SERVE + 4 * PAGES * UNMAP)
    assert often.parts["fault_handling"] == approx(20 * SERVE + 4 * PAGES * UNMAP)


def test_what_the_cpu_never_touched_needs_no_unmapping():
    kernels = [Kernel([reads(range(2 * PAGES))])]
    mapped, fresh = (
        run_of(
            Given(kernels, [PAGES, PAGES], unwritten=names, first_touch=False),
            ONE,
            2,
            prefetch="region",
        )
        for names in ((), ("o1",))
    )
    assert mapped.parts["fault_handling"] - fresh.parts["fault_handling"] == approx(PAGES * UNMAP)
    assert mapped.counts == fresh.counts


def test_each_contiguous_run_costs_its_overhead():
    """Eight slots fault on pages 0 1 · 3 4 5 · 7 of region 0 and page 0 of region 1, all in one
    batch: four runs.
    """
    on = machine(slots=7)
    trace = Given([Kernel([reads([p]) for p in (4, 0, 7, 1, 3, 5, PAGES)])], [2 * PAGES])
    simulation = simulation_of(trace, on, 2)
    simulation.run()
    books = simulation.books[0]
    assert (books["batches"], books["copies_in"], books["pages_in"]) == (1, 4, 7)
    assert float(books["transfer_in"]) == approx(4 * LINK.run_overhead + 7 * IN)
    assert float(books["fault_handling"]) == approx(
        DRIVER.batch_overhead + 2 * DRIVER.region_overhead + 7 * UNMAP
    )


class Outside(EvictionPolicy):
    """FIFO in user space, where a decision costs time."""

    in_driver = False

    def on_fault(self, region):
        if region not in self.order:
            self.order.move_to_tail(region)

    def on_eviction(self, region):
        self.order.remove(region)

    def victim(self):
        return self.order.head


def test_a_policy_outside_the_driver_pays_for_each_decision():
    inside, outside = (
        run_of(cyclic(6, 3), ONE, 4, eviction=e, prefetch="region") for e in ("fifo", Outside())
    )
    assert outside.parts["policy_overhead"] == approx(14 * DRIVER.decision)
    assert outside.time == approx(inside.time + 14 * DRIVER.decision)


@pytest.mark.parametrize(
    ("inward", "outward", "both"),
    [(16, 8, 16), (16, 16, 20), (16, 16, 32), (4, 16, 18), (16, 2, 17)],
)
def test_pipelined_eviction_costs_what_sticks_out_behind_the_way_in(inward, outward, both):
    """Both directions at once are limited by each one's rate and by their common one."""
    rates = {
        "inward": float(inward),
        "outward": float(outward),
        "both": float(both),
        "run_overhead": 0.0,
    }
    plain, pipelined = (
        run_of(cyclic(6, 3), machine(**rates, pipelined=p), 4, prefetch="region")
        for p in (False, True)
    )
    region = PAGES * PAGE
    together = max(region / inward, region / outward, 2 * region / both)
    evictions = 14
    assert plain.parts["transfer_out"] == approx(evictions * region / outward)
    assert pipelined.parts["transfer_out"] == approx(evictions * (together - region / inward))
    assert (
        pipelined.parts["transfer_in"] == plain.parts["transfer_in"] == approx(18 * region / inward)
    )
    assert (
        pipelined.busy["link_out"] == plain.busy["link_out"] == approx(evictions * region / outward)
    )
    assert pipelined.parts["fault_handling"] == approx(plain.parts["fault_handling"])


# Several slots


@pytest.mark.parametrize(
    ("slots", "width", "used"), [(1, 1, 1), (4, 1, 4), (8, 2, 4), (8, 3, 2), (4, 9, 1)]
)
def test_bandwidth_is_shared_among_the_slots_that_a_launch_can_use(slots, width, used):
    """Blocks of ten touches of one hot page, three rounds of them; a block as wide as two takes two
    slots.
    """
    blocks = [reads([0] * 10)] * (3 * used)
    run = run_of(Given([Kernel(blocks, width=width)], [1]), machine(slots), 1)
    fault = SERVE + UNMAP + LINK.run_overhead + IN
    assert run.counts["raw_faults"] == used
    assert run.time == approx(NEAR.launch_overhead + fault + 3 * 10 * used * TOUCH)
    assert run.parts["compute"] == approx(NEAR.launch_overhead + 3 * 10 * used * TOUCH)


def test_a_touch_takes_at_least_the_latency():
    trace = Given([Kernel([reads([0] * 10, bytes=1)] * 4)], [1])
    run = run_of(trace, machine(4, latency=1000.0), 1)
    assert run.parts["compute"] == approx(NEAR.launch_overhead + 10 * 1000)


@pytest.mark.parametrize("intensity", [0.0, 1.0, 2.0, 16.0])
def test_arithmetic_limits_a_kernel_that_does_more_than_the_memory(intensity):
    """The usual roofline: the slower of bandwidth and arithmetic."""
    trace = Given([Kernel([reads([0] * 10)] * 4, intensity=intensity)], [1])
    run = run_of(trace, machine(4), 1)
    per_byte = max(1 / NEAR.bandwidth, intensity / NEAR.flops)
    assert run.parts["compute"] == approx(NEAR.launch_overhead + 4 * 10 * PAGE * per_byte)


def test_each_launch_costs_its_overhead_as_compute():
    trace = Given([Kernel([reads([0])])] * 7, [1])
    run = run_of(trace, ONE, 1)
    assert run.parts["compute"] == approx(7 * (NEAR.launch_overhead + TOUCH))
    assert run.launches["touches"].to_list() == [1] * 7
    assert run.launches["faults"].to_list() == [1] + [0] * 6


@pytest.mark.parametrize("slots", [2, 5, 8])
def test_slots_that_touch_the_same_absent_page_are_one_fault(slots):
    run = run_of(Given([Kernel([reads([3])] * slots)], [PAGES]), machine(slots), 1)
    assert run.counts["faults"] == run.counts["batches"] == run.counts["pages_in"] == 1
    assert run.counts["raw_faults"] == slots
    assert run.counts["hits"] == 0
    assert run.time == approx(
        NEAR.launch_overhead + SERVE + UNMAP + LINK.run_overhead + IN + slots * TOUCH
    )


@pytest.mark.parametrize("limit", [1, 3, 4, 8, 256])
def test_a_batch_takes_no_more_raw_faults_than_its_limit(limit):
    """Eight slots, each with a page of its own: every batch is full but the last.

    A touch takes less than a batch.
    """
    run = run_of(
        Given([Kernel([reads([p]) for p in range(8)])], [8], FLAT),
        machine(8, batch_faults=limit),
        8,
    )
    batches = math.ceil(8 / limit)
    assert run.counts["batches"] == batches
    assert run.counts["faults"] == run.counts["raw_faults"] == 8
    driver = batches * DRIVER.batch_overhead + 8 * (
        DRIVER.region_overhead + UNMAP + LINK.run_overhead + IN
    )
    assert run.busy["driver"] == approx(driver)
    # slots that wake run while the next batch is served, so only the last one's touch is seen
    assert run.time == approx(NEAR.launch_overhead + driver + 8 * TOUCH)


@pytest.mark.parametrize("limit", [1, 3, 8])
def test_duplicates_fill_a_batch_too_and_all_wake_when_the_page_comes(limit):
    run = run_of(Given([Kernel([reads([3])] * 8)], [PAGES]), machine(8, batch_faults=limit), 1)
    assert run.counts["batches"] == run.counts["faults"] == 1
    assert run.counts["raw_faults"] == limit


def test_a_batch_whose_regions_do_not_all_fit_is_cut_and_goes_on_in_the_next():
    """Four regions into two frames, all in one batch: two are served, the victim is on its way in,
    the rest waits.
    """
    run = run_of(Given([Kernel([reads([p]) for p in range(4)])], [4], FLAT), machine(4), 2)
    assert run.counts["batches"] == 2
    assert run.counts["raw_faults"] == 4 + 2
    assert run.counts["faults"] == 4
    assert run.counts["evictions"] == 2
    assert run.counts["decisions"] == 1 + 2  # the one that met a served victim counts


def waiting_and_running(hot_touches: int) -> Given:
    """First the hot page comes near; then one slot faults on another region while the other uses
    the hot page.
    """
    return Given(
        [Kernel([reads([0])]), Kernel([reads([PAGES]), reads([0] * hot_touches)])], [2 * PAGES]
    )


TWO = machine(2)
FAULT = SERVE + UNMAP + LINK.run_overhead + IN  # a page that comes for the first time
BEFORE = 2 * NEAR.launch_overhead + FAULT + 2 * TOUCH  # the first launch, and the second's overhead
SHARED = 2 * TOUCH  # a touch, when two slots share the bandwidth


def test_a_fault_that_others_run_through_costs_nothing():
    hot = math.ceil((FAULT + SHARED) / SHARED) + 5
    run = run_of(waiting_and_running(hot), TWO, 2)
    assert run.time == approx(BEFORE + hot * SHARED)
    assert run.parts["fault_handling"] == approx(SERVE + UNMAP)  # of the first launch
    assert run.parts["transfer_in"] == approx(LINK.run_overhead + IN)
    assert run.busy["driver"] == approx(2 * FAULT)
    assert run.busy["link_in"] == approx(2 * (LINK.run_overhead + IN))


@pytest.mark.parametrize("hot", [1, 100, 1500])
def test_of_a_fault_that_outlasts_the_others_the_rest_is_seen_in_the_proportions_of_its_bill(hot):
    running = hot * SHARED
    assert running < FAULT
    run = run_of(waiting_and_running(hot), TWO, 2)
    seen = (FAULT - running) / FAULT
    assert run.time == approx(BEFORE + FAULT + SHARED)
    assert run.parts["fault_handling"] == approx((1 + seen) * (SERVE + UNMAP))
    assert run.parts["transfer_in"] == approx((1 + seen) * (LINK.run_overhead + IN))
    assert run.parts["compute"] == approx(BEFORE - FAULT + running + SHARED)


def two_faults(between: int) -> Given:
    """As above, but the running slot faults too, after so many touches."""
    return Given(
        [Kernel([reads([0])]), Kernel([reads([PAGES]), reads([0] * between + [2 * PAGES])])],
        [3 * PAGES],
    )


def test_faults_of_the_same_round_share_a_batch_that_begins_with_the_earlier():
    assert 700 * SHARED < QUANTUM
    run = run_of(two_faults(700), TWO, 3)
    assert run.counts["batches"] == 2
    assert run.time == approx(BEFORE + FAULT + (FAULT - DRIVER.batch_overhead) + SHARED)


def test_a_fault_of_a_later_round_waits_for_the_batch_being_served_and_then_for_its_own():
    assert QUANTUM < 1200 * SHARED < FAULT
    run = run_of(two_faults(1200), TWO, 3)
    assert run.counts["batches"] == 3
    assert run.time == approx(BEFORE + 2 * FAULT + SHARED)


# Remote access


PER_FAR_BYTE = 1 / (LINK.inward * LINK.remote_share)


def far_run(slots: int, blocks: int, bytes: int, **told: Any) -> Run:
    """Two launches of blocks of five touches, all of far pages."""
    kernel = Kernel([reads(range(5), bytes=bytes)] * blocks, told=told)
    return run_of(Given([kernel] * 2, [PAGES]), machine(slots), 1, placement="host")


@pytest.mark.parametrize("sharing", [(), (3.0,)])
@pytest.mark.parametrize("bytes", [1, 512, PAGE])
def test_a_slot_alone_has_the_whole_link(bytes, sharing):
    """What several thread blocks use crosses once for each."""
    run = far_run(1, 3, bytes, sharing=sharing)
    crossing = int(bytes * (sharing or (1,))[0])
    near = max(NEAR.latency, bytes / NEAR.bandwidth)
    touch = LINK.remote_latency + max(near, crossing * PER_FAR_BYTE)
    assert run.parts["remote_access"] == approx(2 * 3 * 5 * touch)
    assert run.parts["compute"] == approx(2 * NEAR.launch_overhead)
    assert run.time == approx(run.parts["remote_access"] + run.parts["compute"])
    assert run.counts["remote_bytes"] == 2 * 3 * 5 * crossing


@pytest.mark.parametrize(("slots", "blocks"), [(4, 4), (4, 10), (64, 200)])
@pytest.mark.parametrize("bytes", [1, 512, PAGE])
def test_slots_share_the_link(slots, blocks, bytes):
    """The link is never faster than its rate, and idles only while nobody asks."""
    run = far_run(slots, blocks, bytes)
    carried = blocks * 5 * bytes * PER_FAR_BYTE
    near = max(NEAR.latency, bytes * slots / NEAR.bandwidth)
    alone = LINK.remote_latency + max(near, bytes * PER_FAR_BYTE)
    waves = math.ceil(blocks / slots) * 5
    assert carried <= run.parts["remote_access"] / 2 <= carried + waves * alone
    assert run.counts["remote_touches"] == run.counts["touches"] == 2 * blocks * 5
    assert run.counts["faults"] == run.counts["hits"] == run.counts["pages_in"] == 0


def test_a_far_touch_does_not_last_longer_because_there_are_idle_slots():
    few, many = (far_run(slots, 1, 1).time for slots in (1, 64))
    assert few == approx(many)


def test_jitter_makes_slots_differ_in_speed_by_at_most_its_share() -> None:
    """Slots with as much work each: the slowest ends last, the work of all stays the same."""
    trace = Given([Kernel([reads(range(PAGES))] * 8)], [PAGES])
    times = {}
    for jitter in (0.0, 0.1):
        on = machine(slots=8)
        on = dataclasses.replace(on, near=dataclasses.replace(on.near, jitter=jitter))
        times[jitter] = run_of(trace, on, 1).parts["compute"]
    assert 1 < times[0.1] / times[0.0] <= 1.1


def test_faults_and_prefetches_unmap_at_their_own_cost_and_evictions_have_one() -> None:
    """Two regions through one frame: the second evicts the first, which is not mapped again."""
    on = machine(unmap_prefetched_per_kib=16.0, evict_overhead=4096.0)
    trace = Given([Kernel([reads(range(2 * PAGES))])], [2 * PAGES])
    kib = PAGE / 1024
    faults = run_of(trace, on, 1, prefetch="region")
    each = on.driver.batch_overhead + on.driver.region_overhead + PAGES * kib * 48.0
    assert faults.parts["fault_handling"] == approx(2 * each + 4096.0)
    ahead = run_of(trace, on, 2, placement="prefetch-all")
    assert ahead.counts["faults"] == 0
    one = on.driver.region_overhead + PAGES * kib * 16.0
    assert ahead.parts["fault_handling"] == approx(2 * one)


@pytest.mark.parametrize("again", [False, True])
def test_the_drivers_victims_may_be_mapped_and_unmapped_again(again: bool) -> None:
    """Regions 0, 1, 0 through one frame: region 0 is unmapped once, or once for each time."""
    on = machine()
    on = dataclasses.replace(on, driver=dataclasses.replace(on.driver, victims_mapped=again))
    trace = Given([Kernel([reads([*range(2 * PAGES), *range(PAGES)])])], [2 * PAGES])
    run = run_of(trace, on, 1, prefetch="region")
    assert run.counts["evictions"] == 2
    unmapped = (3 if again else 2) * PAGES * UNMAP
    assert run.parts["fault_handling"] == approx(3 * SERVE + unmapped)


class SendBack(PlacementPolicy):
    """Send region 0 back before each launch but the first."""

    def on_launch(self, launch: int) -> None:
        if launch:
            self.memory.evict(0)


def test_what_a_runtime_evicts_is_mapped_and_unmapped_again() -> None:
    """An eviction by the runtime is a prefetch to the CPU, which maps the pages there."""
    trace = Given([Kernel([reads(range(PAGES))])] * 3, [PAGES])
    handling = []
    for maps in (True, False):
        on = machine(evict_overhead=4096.0)
        on = dataclasses.replace(on, driver=dataclasses.replace(on.driver, evict_maps=maps))
        run = run_of(trace, on, 2, placement=SendBack(), prefetch="region")
        assert run.counts["evictions"] == 2
        handling.append(run.parts["fault_handling"])
    assert handling[1] == approx(3 * SERVE + PAGES * UNMAP + 2 * 4096.0)
    assert handling[0] == approx(handling[1] + 2 * PAGES * UNMAP)
