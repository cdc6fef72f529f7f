"""Closed forms of what a machine may have between a touch and its page: µTLBs, faults of one block
at once, copies beside handling, copies split where a fault ends, runs, first services and tails.
"""

from __future__ import annotations

import math
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidegate.machine.machine import load_machine
from tidegate.policies.interface.page_flags import NEAR
from tidegate.policy import EvictionPolicy
from tidegate.trace.geometry import Geometry
from traces import (
    FLAT,
    PAGE,
    PAGES,
    Given,
    Kernel,
    Touch,
    machine,
    one_block,
    reads,
    run_of,
    simulation_of,
)

pytestmark = pytest.mark.closed_form

ONE = machine()
NEAR_MEMORY, LINK, DRIVER = ONE.near, ONE.link, ONE.driver
TOUCH = PAGE / NEAR_MEMORY.bandwidth
IN, OUT = PAGE / LINK.inward, PAGE / LINK.outward
UNMAP = DRIVER.unmap_per_kib * PAGE / 1024
BATCH, REGION = DRIVER.batch_overhead, DRIVER.region_overhead
COPY = LINK.run_overhead + IN  # of one page
LAUNCH = NEAR_MEMORY.launch_overhead

BLOCK = Geometry()  # regions of 2 MiB, pages of 64 KiB
ALL = {
    "copy_overhead": 512.0,
    "first_overhead": 32_768.0,
    "fault_bytes": 512,
    "asynchronous": True,
    "round_tails": True,
    "evict_overhead": 4096.0,
}


def approx(value: float) -> Any:
    return pytest.approx(value, rel=1e-9, abs=1e-6)


def each_its_own(pages: list[int], regions: int, width: int = 1) -> Given:
    """Return a launch of blocks of one touch each; a page is a region."""
    return Given([Kernel([reads([p]) for p in pages], width=width)], [regions], FLAT)


# Without the new constants


FILE = """
description = "round numbers"
offers = ["faults"]
[geometry]
page = 4096
region = 32768
[near]
sms = {slots}
blocks_per_sm = 1
bytes = "1GiB"
bandwidth = "512GB/s"
flops = "1.024TFLOPS"
latency = "2ns"
launch_overhead = "4us"
[link]
inward = "16GB/s"
outward = "8GB/s"
both = "16GB/s"
run_overhead = "1536ns"
remote_share = 0.5
remote_latency = "640ns"
[driver]
batch_faults = 256
batch_overhead = "20us"
region_overhead = "10us"
unmap_per_kib = "48ns"
"""


@pytest.mark.parametrize("slots", [1, 4])
def test_a_machine_file_without_them_has_serial_turns_of_one_fault_a_block(
    tmp_path: Path, slots: int
) -> None:
    """Four regions through two frames: handling, copies in and copies out one after another."""
    file = tmp_path / "round.toml"
    file.write_text(FILE.format(slots=slots))
    trace = Given([Kernel([reads(range(4 * PAGES))])] * 2, [4 * PAGES])
    on = load_machine(str(file))
    run = run_of(trace, on, 2, prefetch="region")
    assert run.counts["batches"] == run.counts["faults"] == run.counts["raw_faults"] == 8
    assert run.parts == {
        "compute": approx(2 * LAUNCH + slots * 8 * PAGES * TOUCH),
        "fault_handling": approx(8 * (BATCH + REGION) + 4 * PAGES * UNMAP),
        "transfer_in": approx(8 * (LINK.run_overhead + PAGES * IN)),
        "transfer_out": approx(6 * PAGES * OUT),
        "remote_access": 0,
        "policy_overhead": 0,
    }


# µTLBs


class Arrivals(EvictionPolicy):
    """FIFO that records the regions that faulted."""

    def start(self) -> None:
        self.faulted: list[int] = []

    def on_fault(self, region: int) -> None:
        self.faulted.append(region)
        self.order.move_to_tail(region)

    def on_eviction(self, region: int) -> None:
        self.order.remove(region)

    def victim(self) -> int:
        return self.order.head


def batches_of(trace: Given, on: Any, frames: int) -> list[list[int]]:
    """Return the regions that faulted in each batch."""
    policy = Arrivals()
    run = run_of(trace, on, frames, eviction=policy)
    ends = run.timeline["faults"].to_list()
    assert len(ends) == run.counts["batches"]
    begins = [0, *ends[:-1]]
    return [policy.faulted[a:b] for a, b in zip(begins, ends, strict=True)]


@pytest.mark.parametrize(
    ("utlb_sms", "window", "most", "batches"),
    [
        (2, 1, 256, [[5, 7], [4, 6]]),  # slots 0 and 2, then 1 and 3
        (2, 2, 256, [[4, 5, 6, 7]]),
        (2, 2, 3, [[5, 6, 7], [4]]),  # the first µTLB's two, and one of the other's
        (1, 1, 256, [[4, 5, 6, 7]]),
        (1, 1, 3, [[5, 6, 7], [4]]),
        (4, 1, 256, [[7], [6], [5], [4]]),
        (3, 1, 256, [[4, 7], [6], [5]]),  # the last µTLB has one SM
        (4, 3, 256, [[5, 6, 7], [4]]),
    ],
)
def test_each_utlb_raises_its_window_in_every_batch(utlb_sms, window, most, batches):
    """Slots 0 to 3, one on each SM, touch regions 7, 6, 5 and 4."""
    on = machine(4, utlb_sms=utlb_sms, utlb_faults=window, batch_faults=most)
    trace = each_its_own([7, 6, 5, 4], 8)
    assert batches_of(trace, on, 8) == batches
    run = run_of(trace, on, 8)
    assert run.counts["raw_faults"] == run.counts["faults"] == 4
    driver = len(batches) * BATCH + 4 * (REGION + UNMAP + COPY)
    assert run.busy["driver"] == approx(driver)
    assert run.time == approx(LAUNCH + driver + 4 * TOUCH)


@pytest.mark.parametrize(("width", "batches"), [(1, 4), (2, 1), (4, 1)])
def test_a_slot_of_several_thread_blocks_has_as_many_windows(width, batches):
    """Eight slots on two µTLBs of four SMs: of slots as wide as two there are four, at SMs 0, 2, 4
    and 6.
    """
    on = machine(8, utlb_sms=4, utlb_faults=1)
    run = run_of(each_its_own(list(range(8 // width)), 8, width), on, 8)
    assert run.counts["raw_faults"] == 8 // width
    assert run.counts["batches"] == batches


def test_several_blocks_on_an_sm_share_its_window():
    """Slots 0 and 2 are on the first SM, 1 and 3 on the second."""
    on = machine(4, blocks_per_sm=2, utlb_faults=1)
    assert batches_of(each_its_own([7, 6, 5, 4], 8), on, 8) == [[6, 7], [4, 5]]


# Several faults of one block


@pytest.mark.parametrize("constant", ["utlb_faults", "block_faults"])
@pytest.mark.parametrize("most", [2, 256])
@pytest.mark.parametrize("window", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("kinds", ["RRRRRR", "WWWWW", "RRWWRR", "RWRWRW", "RRRRRW"])
def test_a_block_raises_its_next_touches_of_one_kind_together(kinds, window, most, constant):
    touches = [Touch(p, write=kind == "W") for p, kind in enumerate(kinds)]
    n = len(touches)
    trace = one_block(touches, [n], FLAT)
    run = run_of(trace, machine(batch_faults=most, **{constant: window}), n)
    batches = sum(math.ceil(len(list(g)) / min(window, most)) for _, g in groupby(kinds))
    assert run.counts["batches"] == batches
    assert run.counts["raw_faults"] == run.counts["faults"] == n
    assert run.time == approx(LAUNCH + n * (TOUCH + REGION + UNMAP + COPY) + batches * BATCH)


def test_touches_of_one_page_are_several_raw_faults_and_near_pages_none():
    trace = one_block(reads([0, 0, 1, 1, 0, 2, 3]), [4], FLAT)
    run = run_of(trace, machine(utlb_faults=4), 4)
    assert run.counts["batches"] == 2
    assert run.counts["faults"] == 4
    assert run.counts["raw_faults"] == 4 + 2


def test_touches_ahead_cannot_keep_a_block_from_its_page():
    """One frame, which pages 0 and 1 would take in turn, as each batch is served by address."""
    trace = one_block(reads([2, 0, 1]), [3], FLAT)
    on = machine(utlb_faults=3)
    assert batches_of(trace, on, 1) == [[0], [2], [0], [1]]
    run = run_of(trace, on, 1)
    assert run.counts["raw_faults"] == 3 + 1 + 2 + 1
    assert run.counts["evictions"] == 3


# Copies beside handling


HANDLE = REGION + UNMAP  # one page of a region


@pytest.mark.parametrize("regions", [1, 2, 5])
@pytest.mark.parametrize("run_overhead", [0.0, 1536.0, 16_384.0])
def test_handling_of_later_regions_hides_under_copies_of_those_before(regions, run_overhead):
    trace = each_its_own(list(range(regions)), regions)
    copy = run_overhead + IN
    times = {}
    for asynchronous in (False, True):
        on = machine(regions, run_overhead=run_overhead, asynchronous=asynchronous)
        run = run_of(trace, on, regions)
        assert run.counts["batches"] == 1
        assert run.parts["transfer_in"] == approx(regions * copy)
        assert run.busy["driver"] == approx(run.parts["fault_handling"] + run.parts["transfer_in"])
        times[asynchronous] = run.time - LAUNCH - regions * TOUCH
    assert times[False] == approx(BATCH + regions * (HANDLE + copy))
    assert times[True] == approx(BATCH + max(regions * HANDLE + copy, HANDLE + regions * copy))


@pytest.mark.parametrize("evict_overhead", [0.0, 4096.0, 65_536.0])
@pytest.mark.parametrize("outward", [8.0, 0.0625])
def test_a_copy_in_waits_for_the_copy_out_before_it(outward, evict_overhead):
    """Regions 0 and 1 are near; 2 and 3 come in one batch, and each evicts one."""
    kernels = [Kernel([reads([p]) for p in pages]) for pages in ((0, 1), (2, 3))]
    on = machine(2, outward=outward, evict_overhead=evict_overhead, asynchronous=True)
    run = run_of(Given(kernels, [4], FLAT), on, 2)
    took = run.launches["end"][1] - run.launches["start"][1] - 2 * TOUCH
    out = PAGE / outward
    left = BATCH + evict_overhead + out
    came = max(left, BATCH + evict_overhead + HANDLE) + COPY
    left = max(came, BATCH + 2 * evict_overhead + HANDLE) + out
    came = max(left, BATCH + 2 * evict_overhead + 2 * HANDLE) + COPY
    assert took == approx(came)
    assert run.parts["transfer_out"] == approx(2 * out)


# The price of a run, of an eviction and of a region's first service


def test_an_eviction_costs_its_runs():
    """Pages 0 1 · 3 4 5 · 7 of region 0 come in one batch and leave for region 1."""
    near = [4, 0, 7, 1, 3, 5]
    first = Kernel([[Touch(p, write=p < 4)] for p in near])  # pages 0, 1 and 3 are written
    trace = Given([first, Kernel([reads([PAGES])])], [2 * PAGES])
    costs = {"copy_overhead": 512.0, "run_overhead_outward": 2048.0, "evict_overhead": 4096.0}
    for dirty_only, pages, runs in ((False, 6, 3), (True, 3, 2)):
        run = run_of(trace, machine(6, **costs), 1, dirty_only=dirty_only)
        assert run.counts["pages_written_back"] == pages
        assert run.parts["transfer_out"] == approx(runs * 2048 + pages * OUT)
        assert run.parts["transfer_in"] == approx(4 * LINK.run_overhead + 7 * IN)
        handling = 2 * (BATCH + REGION) + 7 * UNMAP + 4096 + (3 + 1 + runs) * 512
        assert run.parts["fault_handling"] == approx(handling)


def test_a_regions_first_service_costs_more_and_its_return_does_not():
    regions, passes = 5, 3
    trace = Given([Kernel([reads(range(regions * PAGES))])] * passes, [regions * PAGES])
    plain, first = (
        run_of(trace, machine(first_overhead=f), 2, prefetch="region") for f in (0.0, 32_768.0)
    )
    assert first.counts == plain.counts
    assert first.counts["faults"] == regions * passes
    assert first.time == approx(plain.time + regions * 32_768)
    assert first.parts["fault_handling"] == approx(plain.parts["fault_handling"] + 5 * 32_768)


def test_faults_of_one_region_pay_its_first_service_once():
    run = run_of(one_block(reads(range(PAGES)), [PAGES]), machine(first_overhead=32_768.0), 1)
    assert run.counts["faults"] == PAGES
    assert run.time == approx(LAUNCH + 32_768 + PAGES * (TOUCH + BATCH + REGION + UNMAP + COPY))


# Copies split where a fault ends


@pytest.mark.parametrize(
    ("blocks", "bytes", "copies"),
    [
        (1, 4, 2),  # 4 KiB, and the rest
        (1, 127, 2),
        (1, 128, 2),
        (1, 65_536 - 4096, 2),
        (1, 65_536 - 4095, 1),  # rounded up to whole faults it is the page
        (1, 65_536, 1),
        (2, 4, 2),
        (15, 4, 2),
        (16, 4, 1),
        (2, 32_768, 1),
    ],
)
@pytest.mark.parametrize("prefetch", ["none", "region"])
def test_what_faults_ask_for_is_copied_apart(blocks, bytes, copies, prefetch):
    """Blocks touch page 0 at once; by region all its pages come with it."""
    trace = Given([Kernel([reads([0], bytes=bytes)] * blocks)], [32], BLOCK)
    on = machine(blocks, fault_bytes=4096)
    simulation = simulation_of(trace, on, 1, prefetch=prefetch)
    simulation.run()
    books = simulation.books[0]
    pages = {"none": 1, "region": 32}[prefetch]
    if pages == 1:
        assert books["pages_in"] == 1
    assert books["copies_in"] == copies
    assert books["transfer_in"] == approx(copies * LINK.run_overhead + pages * 65_536 / 16)


def test_a_scan_of_a_region_is_six_faults_and_twelve_copies():
    """Each brings its 4 KiB, then the rest of 64, 64, 128, 256, 512 and 1024 KiB."""
    trace = one_block(reads(range(32), bytes=4), [32], BLOCK)
    simulation = simulation_of(trace, machine(fault_bytes=4096), 1, prefetch="tree(threshold=51)")
    simulation.run()
    books = simulation.books[0]
    assert (books["faults"], books["copies_in"], books["pages_in"]) == (6, 12, 32)


def test_faults_of_pages_without_data_are_no_copies():
    trace = Given([Kernel([reads([0], bytes=4)])], [32], BLOCK, unwritten=["o0"])
    simulation = simulation_of(trace, machine(fault_bytes=4096), 1)
    simulation.run()
    assert simulation.books[0]["copies_in"] == simulation.books[0]["transfer_in"] == 0


# Tails


def brought(order: list[int], pages: int, on: Any) -> list[list[int]]:
    """Return the pages that each launch of one touch brings, with tree prefetch at 51 %."""
    seen: set[int] = set()
    moves = []
    for upto in range(1, len(order) + 1):
        trace = Given([Kernel([reads([p], bytes=4)]) for p in order[:upto]], [pages], BLOCK)
        simulation = simulation_of(trace, on, 1, prefetch="tree(threshold=51)")
        simulation.run()
        near = set(np.flatnonzero(simulation.memory.page_state & NEAR).tolist())
        moves.append(sorted(near - seen))
        assert simulation.launches[-1].pages_in == len(near - seen)
        seen = near
    return moves


def spans(*ends: tuple[int, int]) -> list[list[int]]:
    return [list(range(first, last + 1)) for first, last in ends]


@pytest.mark.parametrize("round_tails", [False, True])
@pytest.mark.parametrize(
    ("order", "moves"),
    [
        ([0, 1, 2, 4, 8, 16], spans((0, 0), (1, 1), (2, 3), (4, 7), (8, 15), (16, 31))),
        ([1, 3, 0, 4, 8, 16], [[1], [3], [0, 2], *spans((4, 7), (8, 15), (16, 31))]),
    ],
)
def test_the_sequences_measured_on_a_real_card(order, moves, round_tails):
    """The comments of UVMSmart's micro-benchmarks; its pages are of 64 KiB."""
    assert brought(order, 32, machine(round_tails=round_tails)) == moves


@pytest.mark.parametrize(
    ("pages", "order", "rounded", "cut"),
    [
        # 3 of 5 pages are more than half of five leaves and not of eight
        (5, [0, 1, 2, 4], [[0], [1], [2, 3], [4]], [[0], [1], [2, 3, 4], []]),
        (3, [0, 1, 2], [[0], [1], [2]], [[0], [1, 2], []]),
        (6, [4, 0, 1, 2], [[4], [0], [1], [2, 3]], [[4], [0], [1], [2, 3, 5]]),
        (12, [8, 0, 1, 2], [[8], [0], [1], [2, 3]], [[8], [0], [1], [2, 3]]),
        (1, [0], [[0]], [[0]]),
        (31, [0, 1, 2, 4, 8, 16], *[spans((0, 0), (1, 1), (2, 3), (4, 7), (8, 15), (16, 30))] * 2),
    ],
)
def test_the_tree_of_a_tail_has_a_power_of_two_of_leaves(pages, order, rounded, cut):
    assert brought(order, pages, machine(round_tails=True)) == rounded
    assert brought(order, pages, machine(round_tails=False)) == cut


# A program with copies of its own


def test_a_program_that_copies_pays_none_of_the_drivers_costs():
    kernels = [Kernel([reads(range(2 * PAGES))])] * 2
    trace = Given(kernels, [2 * PAGES])
    plain, costly = (
        run_of(trace, on, 2, placement="explicit") for on in (machine(), machine(**ALL))
    )
    assert plain.parts == costly.parts
    assert plain.time == approx(
        2 * LAUNCH + 4 * PAGES * TOUCH + 2 * (LINK.run_overhead + PAGES * IN)
    )
    off = machine().with_copies().driver
    on = machine(**ALL).with_copies().driver
    for constant in ("copy_overhead", "first_overhead", "fault_bytes", "evict_overhead"):
        assert getattr(on, constant) == getattr(off, constant)
