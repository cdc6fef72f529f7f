"""Tide: closed forms of its three parts, on loops, streams, hot sets and scans."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.experiments.runs import Run
from tidegate.policies.eviction.tide import Tide
from tidegate.policies.interface.forecast import Costs
from tidegate.policies.registries import placement
from tidegate.policies.systems import find_system
from tidegate.trace.trace import Trace
from traces import PAGE, PAGES, SMALL, flat, machine, one_block, reads, run_of

CYCLES = 20


def one_page_regions(pages: list[int], frames: int, eviction: str = "tide") -> Run:
    """Return a run in which each region is a page, so that a fault is a miss."""
    return run_of(flat(pages), machine(), frames, eviction=eviction, compiled=False)


def test_a_loop_a_third_larger_than_memory_is_learnt_from_faults_alone() -> None:
    """A region of one page cannot be observed. The first laps are LRU's: all of it faults."""
    loop = list(range(40)) * CYCLES
    ours, best = (one_page_regions(loop, 30, p).counts["faults"] for p in ("tide", "belady"))
    lru = one_page_regions(loop, 30, "lru").counts["faults"]
    assert lru == 40 * CYCLES
    assert best <= ours <= 1.35 * best


def test_a_stream_moves_each_region_once() -> None:
    counts = one_page_regions(list(range(200)), 30).counts
    assert (counts["faults"], counts["evictions"]) == (200, 170)


def test_a_hot_set_that_fits_comes_once() -> None:
    assert one_page_regions([0, 1, 2, 3, 4, 5] * 50, 6).counts["faults"] == 6


def test_a_scan_through_a_hot_set_leaves_most_of_it_alone() -> None:
    """Between two regions of the scan all of the hot set is used."""
    hot, scanned = 10, 100
    pages = [p for cold in range(hot, hot + scanned) for p in (*range(hot), cold)]
    faults = one_page_regions(pages, 2 * hot).counts["faults"]
    assert hot + scanned <= faults <= 1.25 * (hot + scanned)


# Placement. A region has PAGES pages, and each touch reads one of them whole.


def placed(trace: Trace, frames: int, placement: str = "tide") -> Run:
    return run_of(trace, machine(), frames, eviction="tide", placement=placement, compiled=False)


def passes(regions: int, times: int) -> Trace:
    """Return a trace that reads so many regions, page by page, so many times."""
    pages = list(range(regions * PAGES)) * times
    return one_block(reads(pages, bytes=PAGE), [regions * PAGES])


def test_what_fits_is_not_rented() -> None:
    ours, um = (
        placed(passes(4, 3), 4),
        run_of(passes(4, 3), machine(), 4, eviction="tide", compiled=False),
    )
    assert ours.counts == um.counts


def test_what_is_read_once_stays_far() -> None:
    """A pass pays one region's bytes for each: less than this price."""
    run = placed(passes(6, 1), 3, "tide(price=2.0)")
    assert run.counts["pages_in"] == 0
    assert run.counts["remote_bytes"] == 6 * PAGES * PAGE


# A migration by a fault and back costs as much as 40 pages over the link, fetching a region 16, and
# swapping two 26.
COSTS = Costs(fault=10.0, observation=1.0, bring=20.0, fetch=16.0, send=10.0, remote=1.0)


class Asked(SimpleNamespace):
    """A memory of 4 regions and 2 frames that writes down what it is asked for."""

    def __init__(self, host: tuple[Any, ...] | None = None) -> None:
        owner = SimpleNamespace(first_page=0, pages=4 * PAGES, host=host)
        super().__init__(geometry=SMALL, objects=(owner,), regions=4, frames=2)
        self.bought: list[int] = []
        self.far: list[int] = []
        self.counted = 0
        self.accesses = PAGE // 128
        self.costs: Costs | None = COSTS
        self.by_faults: list[int] = []

    def count_remote(self, accesses: int) -> None:
        self.counted = accesses

    def advise(self, first: int, pages: int, prefer: str | None) -> None:
        regions = range(first // PAGES, (first + pages) // PAGES)
        if prefer == "far":
            self.far += regions
        elif len(regions) > 1:  # one region is a purchase
            self.by_faults += regions

    def prefetch_async(self, first: int, pages: int) -> None:
        self.bought.append(first // PAGES)


def rent(policy: Any, region: int) -> int:
    """Let a region be used over the link until it is bought; return the notifications it took."""
    before = len(policy.memory.bought)
    for notices in count(1):
        policy.on_notification(region)
        if len(policy.memory.bought) > before:
            assert policy.memory.bought[-1] == region
            return notices
    return 0


def placing(asked: Asked, spec: str = "tide") -> Any:
    policy = placement.make(spec)
    policy.attach(asked)  # type: ignore[arg-type]
    policy.start()
    policy.on_launch(0)
    return policy


def test_an_object_whose_rent_is_above_a_purchase_comes_by_faults() -> None:
    policy = placing(Asked())
    policy.memory.accesses = 41 * PAGE // 128
    policy.on_notification(0)
    assert policy.memory.by_faults == []  # one region may be an exception
    policy.on_notification(1)
    assert policy.memory.by_faults == [0, 1, 2, 3]
    policy.memory.far.clear()
    for _ in range(16):
        policy.on_eviction(0)
    assert policy.memory.far == [0]  # one in 16 is rented, to see whether it is still so


@pytest.mark.parametrize("costs", [COSTS, None])
def test_an_object_whose_rent_is_below_a_purchase_is_rented_again(costs: Costs | None) -> None:
    asked = Asked()
    asked.costs, asked.accesses = costs, 39 * PAGE // 128
    policy = placing(asked)
    for region in range(4):
        policy.on_notification(region)
        policy.on_eviction(region)
    assert policy.memory.by_faults == []
    assert policy.memory.far == [0, 1, 2, 3] * 2


def test_an_object_that_is_shared_no_longer_is_rented_when_it_leaves() -> None:
    policy = placing(Asked(), "tide(latest=2)")
    policy.memory.accesses = 50 * PAGE // 128
    for _ in range(2):
        policy.on_notification(0)
    policy.memory.accesses = 1
    policy.memory.far.clear()
    policy.on_notification(1)
    policy.on_eviction(1)
    assert policy.memory.far == [1]


@pytest.mark.parametrize("price", [1, 2])
def test_a_region_is_bought_when_its_rent_has_cost_a_purchase(price: int) -> None:
    """Dearer when memory is full, and dearer still if it did not earn it."""
    policy = placing(Asked(), f"tide(price={price}, dearer=3, earned=4.0)")
    assert policy.memory.far == [0, 1, 2, 3]
    assert policy.memory.counted == PAGE // 128
    assert rent(policy, 0) == 16 * price
    policy.on_eviction(0)  # it stayed for no time
    assert rent(policy, 0) == 3 * 26 * price
    for _ in range(4 * 3 * 26 * price):  # another is used, four times as long as its rent took
        policy.on_notification(1)
    policy.on_eviction(0)
    assert rent(policy, 0) == 26 * price
    assert policy.memory.far[-1] == 0


def test_one_use_buys_nothing() -> None:
    assert rent(placing(Asked(), "tide(price=0.0)"), 0) == 2


def test_rent_is_what_the_counter_saw() -> None:
    """A notification that comes late stands for more than a page."""
    policy = placing(Asked(), "tide(price=1.0)")
    policy.memory.accesses = 4 * PAGE // 128
    assert rent(policy, 0) == 4


def test_an_object_without_host_data_is_born_near() -> None:
    assert placing(Asked(host=())).memory.far == []
    assert placing(Asked(host=((0, PAGE),))).memory.far == [0, 1, 2, 3]


# As machine() has them: fetching a region and its way back; a sampled page's way out and back.
ARRIVAL = 10_000.0 + 1536.0 + PAGES * (PAGE / 16 + 48.0 * PAGE / 1024 + PAGE / 8)
OBSERVATION = PAGE / 8 + 1536.0 + PAGE / 16


def test_no_more_is_observed_than_arrivals_pay_for() -> None:
    """Where nothing comes any more nothing is observed."""
    share = 0.1
    run = run_of(passes(8, 40), machine(), 4, eviction=f"tide(share={share})", compiled=False)
    pays = share * (20_000.0 + ARRIVAL) / OBSERVATION
    assert 1 < run.counts["observations"] <= pays * (4 + run.counts["evictions"])
    fits = run_of(passes(4, 40), machine(), 4, eviction=f"tide(share={share})", compiled=False)
    assert fits.counts["observations"] <= pays * 4


class Patient(Tide):
    """A user's own, which counts how often it is asked."""

    def victim(self) -> int:
        self.asked = self.asked + 1
        return super().victim()

    def start(self) -> None:
        super().start()
        self.asked = 0


@pytest.mark.parametrize("compiled", [False, True])
def test_a_user_can_extend_it(compiled: bool) -> None:
    trace = passes(8, 10)
    own = run_of(trace, machine(), 4, eviction=Patient(draws=4), compiled=compiled)
    assert own.counts == run_of(trace, machine(), 4, eviction="tide(draws=4)").counts
    assert own.counts["evictions"] > 0


def test_a_loop_larger_than_memory_comes_to_rest() -> None:
    """Prices double, up to a limit, so that purchases become rare."""
    few, many = (placed(passes(6, times), 3).counts["pages_in"] for times in (50, 100))
    assert 2 * (many - few) < few
    lru = run_of(passes(6, 100), machine(), 3, eviction="lru").counts["pages_in"]
    assert many < lru / 5


def test_the_system_is_the_three_of_them() -> None:
    system = find_system("tide")
    assert (system.eviction, system.prefetch, system.placement) == ("tide", "tide", "tide")
