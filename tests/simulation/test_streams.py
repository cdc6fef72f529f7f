"""Copy streams: copies beside kernels, by formula."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tidegate.policy import PlacementPolicy
from tidegate.trace import Copy
from traces import PAGE, PAGES, Given, Kernel, machine, reads, run_of

pytestmark = pytest.mark.closed_form

ONE = machine()
# a region's first copy near, another one, and a copy far
UNMAP = PAGES * ONE.driver.unmap_per_kib * PAGE / 1024
TRANSFER = ONE.link.run_overhead + PAGES * PAGE / ONE.link.inward
AGAIN = ONE.driver.region_overhead + TRANSFER
FIRST = UNMAP + AGAIN
OUT = PAGES * PAGE / ONE.link.outward
LONG, SHORT = 100_000.0, 1000.0


class Plan(PlacementPolicy):
    """Does one thing at each launch."""

    def __init__(self, *does: Callable[[Any], None]):
        super().__init__()
        self.does = does

    def on_launch(self, launch: int) -> None:
        if launch < len(self.does):
            self.does[launch](self.memory)


def nothing(memory: Any) -> None: ...


def approx(value: float) -> Any:
    return pytest.approx(value, rel=1e-9, abs=1e-6)


def kernel(region: int, duration: float, write: bool = False, **told: Any) -> Kernel:
    pages = range(region * PAGES, (region + 1) * PAGES)
    return Kernel([reads(pages, write=write)], told={"duration": duration, **told})


def play(kernels: list[Kernel], frames: int, *does: Callable[[Any], None], **how: Any) -> Any:
    """Play kernels over three regions, with the driver's region prefetch."""
    on = how.pop("on", ONE)
    trace = Given(kernels, [3 * PAGES], **how)
    return run_of(trace, on, frames, placement=Plan(*does), prefetch="region")


def ask_for(region: int) -> Callable[[Any], None]:
    return lambda memory: memory.prefetch_async(region * PAGES, PAGES)


def test_a_copy_is_hidden_behind_a_kernel():
    kernels = [kernel(0, LONG), kernel(0, LONG), kernel(1, LONG)]
    run = play(kernels, 2, nothing, ask_for(1))
    assert run.launches["faults"].to_list() == [1, 0, 0]
    assert run.counts["waits"] == 0
    first, last = run.launches["start"][1], run.launches["end"][2]
    assert last - first == approx(2 * LONG)


def test_a_launch_waits_for_what_it_uses_and_does_not_fault():
    kernels = [kernel(0, LONG), kernel(0, SHORT), kernel(1, LONG)]
    run = play(kernels, 2, nothing, ask_for(1))
    assert run.launches["faults"].to_list() == [1, 0, 0]
    assert run.counts["waits"] == 1
    assert run.counts["pages_prefetched"] == PAGES + PAGES - 1
    first, last = run.launches["start"][1], run.launches["end"][2]
    assert last - first == approx(FIRST + LONG)
    exposed = FIRST - SHORT
    assert run.parts["transfer_in"] == approx(TRANSFER + exposed * TRANSFER / FIRST)


def test_a_launch_does_not_wait_for_what_it_does_not_use():
    run = play([kernel(0, LONG), kernel(0, SHORT)], 2, nothing, ask_for(1))
    assert run.launches["end"][1] - run.launches["start"][1] == approx(SHORT)


def test_unwritten_pages_are_born_by_the_stream():
    kernels = [kernel(0, LONG), kernel(1, LONG)]
    run = play(kernels, 2, nothing, ask_for(1), unwritten=["o0"])
    assert run.counts["pages_born"] == 2 * PAGES
    overhead = ONE.driver.region_overhead
    assert run.launches["end"][1] - run.launches["start"][1] == approx(overhead + LONG)


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("dirty_only", [False, True])
def test_an_eviction_by_the_stream_frees_the_frame_when_its_copy_ends(write, dirty_only):
    def swap(memory: Any) -> None:
        memory.evict_async(0)
        memory.prefetch_async(PAGES, PAGES)

    trace = Given([kernel(0, LONG, write), kernel(1, LONG)], [3 * PAGES])
    run = run_of(
        trace, ONE, 1, placement=Plan(nothing, swap), prefetch="region", dirty_only=dirty_only
    )
    out = OUT if write or not dirty_only else 0
    assert run.launches["end"][1] - run.launches["start"][1] == approx(out + FIRST + LONG)
    assert run.counts["faults"] == 1
    assert run.counts["evictions"] == 1
    assert run.counts["decisions"] == 0
    assert run.parts["transfer_out"] == approx(out)


def test_without_a_free_frame_the_stream_evicts_a_victim():
    run = play([kernel(0, LONG), kernel(1, LONG)], 1, nothing, ask_for(1))
    assert run.launches["end"][1] - run.launches["start"][1] == approx(OUT + FIRST + LONG)
    assert run.counts["decisions"] == run.counts["evictions"] == 1


def test_both_streams_share_the_two_way_rate():
    """Inward begins while outward copies: (16 + 8) / 16 times as long."""

    def swap(memory: Any) -> None:
        memory.evict_async(0)
        memory.prefetch_async(2 * PAGES, PAGES)

    kernels = [kernel(0, LONG), kernel(1, LONG), kernel(2, LONG)]
    run = play(kernels, 3, nothing, nothing, swap)
    took = run.launches["end"][2] - run.launches["start"][2]
    assert took == approx(FIRST + TRANSFER / 2 + LONG)


def test_a_region_that_is_used_again_stays():
    def hesitate(memory: Any) -> None:
        memory.evict_async(0)
        memory.prefetch_async(0, 1)  # it is near: the eviction is cancelled

    run = play([kernel(0, LONG), kernel(0, LONG)], 1, nothing, hesitate)
    assert run.counts["evictions"] == 0
    assert run.launches["end"][1] - run.launches["start"][1] == approx(LONG)


def test_a_touch_of_a_region_that_leaves_brings_it_back():
    run = play([kernel(0, LONG), kernel(0, LONG)], 1, nothing, lambda m: m.evict_async(0))
    assert run.launches["faults"].to_list() == [1, 1]
    # what a runtime sends to the CPU is mapped there, so it is unmapped once more
    handling = ONE.driver.batch_overhead + ONE.driver.region_overhead + UNMAP
    took = run.launches["end"][1] - run.launches["start"][1]
    # its first batch finds it leaving and ends; the next one serves it
    assert took == approx(max(OUT, ONE.driver.batch_overhead) + handling + TRANSFER + LONG)


# First services, runs, and faults beside the streams


def test_the_stream_pays_a_regions_first_service_once():
    """Region 1 comes by the stream, leaves and comes again; region 0 came by a fault."""
    on = machine(first_overhead=32_768.0)
    kernels = [kernel(0, LONG), kernel(1, LONG), kernel(0, LONG), kernel(1, LONG)]
    run = play(kernels, 1, nothing, ask_for(1), ask_for(0), ask_for(1), on=on)
    took = (run.launches["end"] - run.launches["start"]).to_list()
    # what the stream evicted is mapped on the CPU again
    assert took[1:] == [approx(OUT + FIRST + more + LONG) for more in (32_768.0, 0.0, 0.0)]
    assert took[0] == approx(ONE.driver.batch_overhead + FIRST + 32_768.0 + LONG)


def test_the_stream_pays_for_each_run_it_brings_and_takes():
    """Pages 0, 1 and 4 of region 1 come and leave again."""
    costs = {"copy_overhead": 512.0, "run_overhead_outward": 2048.0}

    def bring(memory: Any) -> None:
        memory.prefetch_async(PAGES, 2)
        memory.prefetch_async(PAGES + 4, 1)

    used = Kernel([reads([PAGES, PAGES + 4])], told={"duration": LONG})
    last = kernel(2, LONG, copies=(Copy(PAGES, PAGES, "far", wait=True),))
    run = play([used, last], 2, bring, on=machine(**costs))
    assert run.counts["faults"] == 1
    page = PAGE / ONE.link.inward + ONE.driver.unmap_per_kib * PAGE / 1024
    came = ONE.driver.region_overhead + 2 * (512 + ONE.link.run_overhead) + 3 * page
    assert run.launches["end"][0] - run.launches["start"][0] == approx(came + LONG)
    left = run.launches["start"][1] - run.launches["end"][0]
    assert left == approx(2 * 2048 + 3 * PAGE / ONE.link.outward)
    assert run.busy["link_out"] == approx(left)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_fault_is_served_though_its_page_was_asked_for_meanwhile(asynchronous):
    """Two blocks fault, one fault a batch. With the first, the other's page is asked of the stream,
    which copies another region all the while: the driver serves the fault that it has.
    """

    class Ahead(PlacementPolicy):
        def on_launch(self, launch: int) -> None:
            self.memory.prefetch_async(2 * PAGES, PAGES)

        def on_fault(self, region: int) -> None:
            if region == 0:
                self.memory.prefetch_async(PAGES, 1)

    trace = Given([Kernel([reads([0]), reads([PAGES])])], [3 * PAGES])
    on = machine(2, batch_faults=1, asynchronous=asynchronous, inward=0.0625)
    run = run_of(trace, on, 3, placement=Ahead())
    assert run.counts["batches"] == run.counts["faults"] == run.counts["raw_faults"] == 2
    assert run.counts["waits"] == 0


# Copies of the program itself


def test_a_program_waits_for_its_copy_or_does_not():
    there = [kernel(0, LONG), kernel(1, LONG, copies=(Copy(PAGES, PAGES, wait=True),))]
    ahead = [kernel(0, LONG, copies=(Copy(PAGES, PAGES),)), kernel(1, LONG)]
    runs = [
        run_of(Given(kernels, [2 * PAGES]), ONE, 2, prefetch="region") for kernels in (there, ahead)
    ]
    waited, hidden = runs
    assert [r.counts["faults"] for r in runs] == [1, 1]
    assert waited.launches["start"][1] - waited.launches["end"][0] == approx(FIRST)
    assert hidden.launches["start"][1] == hidden.launches["end"][0]
    assert hidden.launches["end"][1] - hidden.launches["start"][1] == approx(LONG)


def test_a_wait_for_an_earlier_copy_copies_nothing_more():
    ask, wait = Copy(PAGES, PAGES), Copy(PAGES, PAGES, wait=True)
    kernels = [kernel(0, SHORT, copies=(ask,)), kernel(0, SHORT, copies=(wait,))]
    run = run_of(Given(kernels, [PAGES, PAGES], unwritten=["o0"]), ONE, 2, prefetch="region")
    assert run.counts["pages_in"] == PAGES
    served = ONE.driver.batch_overhead + ONE.driver.region_overhead
    assert run.launches["end"][0] == approx(served + SHORT)
    assert run.launches["start"][1] == approx(max(FIRST, served + SHORT))


@pytest.mark.parametrize(("pages", "evicted"), [(PAGES, 1), (PAGES - 1, 0), (2 * PAGES, 2)])
def test_a_copy_far_evicts_the_regions_that_lie_whole_in_it(pages, evicted):
    copy = Copy(0, pages, "far", wait=True)
    kernels = [kernel(0, LONG), kernel(1, LONG), kernel(2, LONG, copies=(copy,))]
    run = run_of(Given(kernels, [3 * PAGES]), ONE, 3, prefetch="region")
    assert run.counts["evictions"] == evicted
    assert run.launches["start"][2] - run.launches["end"][1] == approx(evicted * OUT)
