"""First touch, lifetimes and read-mostly data: counts and times by formula."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from tidegate.policies.registries import eviction
from tidegate.policy import PlacementPolicy, PrefetchPolicy, TouchBits
from traces import PAGES, Given, Kernel, machine, reads, run_of, simulation_of, writes

pytestmark = pytest.mark.closed_form

ONE = machine()
SERVE = ONE.driver.batch_overhead + ONE.driver.region_overhead


def approx(value: float) -> Any:
    return pytest.approx(value, rel=1e-9, abs=1e-6)


def passes(regions: int, count: int, **told: Any) -> Given:
    """Passes over an object without host data."""
    kernel = Kernel([reads(range(regions * PAGES))], told=told)
    return Given([kernel] * count, [regions * PAGES], unwritten=["o0"])


def whole(region: int) -> tuple[int, int]:
    """Return the pages of a region, as a range to free."""
    return region * PAGES, (region + 1) * PAGES


def test_unwritten_memory_is_born_near():
    run = run_of(passes(3, 2), ONE, 3, prefetch="region")
    assert run.counts["pages_born"] == 3 * PAGES
    assert run.counts["faults"] == 3
    assert run.counts["pages_in"] == run.summary["bytes_in"] == 0
    assert run.parts["transfer_in"] == 0
    assert run.parts["fault_handling"] == approx(3 * SERVE)  # nothing is unmapped


def test_what_was_born_crosses_the_link_once_it_was_written_back():
    run = run_of(passes(3, 3), ONE, 1, prefetch="region")
    assert run.counts["pages_born"] == 3 * PAGES
    assert run.counts["pages_in"] == 2 * 3 * PAGES
    assert run.counts["pages_written_back"] == (3 * 3 - 1) * PAGES


def test_what_was_never_written_is_dropped_and_born_again():
    run = run_of(passes(3, 3), ONE, 1, prefetch="region", dirty_only=True)
    assert run.counts["pages_born"] == 3 * 3 * PAGES
    assert run.counts["pages_in"] == run.counts["pages_written_back"] == 0


def test_pages_with_some_host_data_are_transferred():
    trace = passes(1, 1)
    (own,) = trace.objects
    trace.objects = (dataclasses.replace(own, host=((5000, 5001), (5 * 4096, 7 * 4096))),)
    run = run_of(trace, ONE, 1, prefetch="region")
    assert run.counts["pages_in"] == 3  # page 1, pages 5 and 6
    assert run.counts["pages_born"] == PAGES - 3
    assert run.parts["transfer_in"] == approx(2 * ONE.link.run_overhead + 3 * 256)


def test_a_remote_touch_puts_the_page_into_far_memory():
    class Away(PlacementPolicy):
        def on_launch(self, launch: int) -> None:
            self.memory.advise(0, PAGES, "far" if launch == 0 else None)

    run = run_of(passes(1, 2), ONE, 1, placement=Away(), prefetch="region")
    assert (run.counts["remote_touches"], run.counts["pages_in"]) == (PAGES, PAGES)
    assert run.counts["pages_born"] == 0


# Lifetimes


@pytest.mark.parametrize("policy", eviction.names())
@pytest.mark.parametrize("frame", ["region", "page"])
def test_dead_data_are_discarded_and_every_policy_forgets_them(policy, frame):
    """Eight regions live one after another in one frame: nothing is ever evicted."""
    kernels = [Kernel([writes(range(*whole(r)))], told={"frees": (whole(r),)}) for r in range(8)]
    trace = Given(kernels, [8 * PAGES], unwritten=["o0"])
    on = machine(frame=frame)
    run = run_of(trace, on, 1, eviction=policy, prefetch="region", compiled=False)
    assert (
        run.counts["evictions"] == run.counts["pages_written_back"] == run.counts["pages_in"] == 0
    )
    assert run.counts["pages_discarded"] == run.counts["pages_born"] == 8 * PAGES
    assert run.tables["objects"]["pages_near"] == [0]


def test_compiled_policies_forget_dead_data_too():
    kernels = [Kernel([writes(range(*whole(r)))], told={"frees": (whole(r),)}) for r in range(8)]
    trace = Given(kernels * 2, [8 * PAGES], unwritten=["o0"])
    simulation = simulation_of(trace, ONE, 1, prefetch="region")
    simulation.run()
    assert simulation.books["pages_discarded"][0] == 16 * PAGES
    assert simulation.books["evictions"][0] == 0


def test_a_region_keeps_its_frame_until_its_last_page_dies():
    kernels = [
        Kernel([writes(range(PAGES))], told={"frees": ((0, PAGES - 1),)}),
        Kernel([reads([PAGES - 1])], told={"frees": ((PAGES - 1, PAGES),)}),
        Kernel([writes(range(*whole(1)))]),
    ]
    run = run_of(Given(kernels, [2 * PAGES], unwritten=["o0"]), ONE, 1, prefetch="region")
    assert run.launches["faults"].to_list() == [1, 0, 1]
    assert run.counts["pages_discarded"] == PAGES
    assert run.counts["evictions"] == 0


def test_host_data_that_died_are_born_again():
    kernels = [Kernel([reads(range(PAGES))], told={"frees": (whole(0),)})] * 3
    run = run_of(Given(kernels, [PAGES]), ONE, 1, prefetch="region")
    assert (run.counts["pages_in"], run.counts["pages_born"]) == (PAGES, 2 * PAGES)


class Listener(PrefetchPolicy):
    """Writes down what leaves, how, and how many of its pages were touched."""

    sees = TouchBits()

    def start(self) -> None:
        self.heard: list[tuple[str, int, int]] = []

    def on_eviction(self, region: int) -> None:
        self.heard.append(("evicted", region, int(self.memory.touched(region).sum())))

    def on_free(self, region: int) -> None:
        self.heard.append(("freed", region, int(self.memory.touched(region).sum())))


def test_policies_learn_of_it():
    kernels = [
        Kernel([writes(range(3))], told={"frees": ((0, 1),)}),  # two pages of it live on
        Kernel([reads([PAGES])], told={"frees": ((0, 2 * PAGES),)}),
    ]
    listener = Listener()
    run_of(Given(kernels, [2 * PAGES]), ONE, 2, prefetch=listener)
    assert listener.heard == [("freed", 0, 2), ("freed", 1, 1)]


class Discarder(PlacementPolicy):
    """Discards region 0 before the second launch."""

    def on_launch(self, launch: int) -> None:
        if launch == 1:
            self.memory.discard(0)


def test_a_policy_may_discard_a_region():
    kernels = [Kernel([writes(range(PAGES))]), Kernel([writes(range(PAGES))])]
    run = run_of(Given(kernels, [PAGES]), ONE, 1, prefetch="region", placement=Discarder())
    assert run.counts["pages_discarded"] == run.counts["pages_born"] == PAGES
    assert run.counts["evictions"] == run.counts["pages_written_back"] == 0
    assert run.parts["transfer_out"] == 0


def test_belady_knows_that_data_die_before_their_next_touch():
    """Region 0 is touched again before region 1, but its data are dead by then."""
    kernels = [
        Kernel([reads([0, PAGES])]),
        Kernel([reads([2 * PAGES])], told={"frees": (whole(0),)}),
        Kernel([reads([0, PAGES])]),
    ]
    run = run_of(Given(kernels, [3 * PAGES]), ONE, 2, eviction="belady")
    assert run.launches["faults"].to_list() == [2, 1, 1]


# Read-mostly


@pytest.mark.parametrize(("touch", "back"), [(reads, 0), (writes, PAGES)])
def test_read_mostly_pages_are_dropped_unless_they_were_written(touch: Callable, back: int):
    kernels = [Kernel([touch(range(PAGES))]), Kernel([reads(range(*whole(1)))])]
    trace = Given(kernels, [PAGES, PAGES])
    mostly = dataclasses.replace(trace.objects[0], read_mostly=True)
    trace.objects = (mostly, trace.objects[1])
    run = run_of(trace, ONE, 1, prefetch="region")
    assert (run.counts["pages_evicted"], run.counts["pages_written_back"]) == (PAGES, back)
    assert run.parts["transfer_out"] == approx(back * 512)


class Adviser(PlacementPolicy):
    """Advises region 0 to be read-mostly, and takes it back at a later launch."""

    until = 99

    def on_launch(self, launch: int) -> None:
        if launch == 0:
            self.memory.advise(0, PAGES, "read-mostly")
        if launch == self.until:
            self.memory.advise(0, PAGES, "read-write")


@pytest.mark.parametrize(("until", "back"), [(99, 0), (1, PAGES)])
def test_policies_may_advise_it(until, back):
    kernels = [Kernel([reads(range(PAGES))]), Kernel([reads(range(*whole(1)))])]
    adviser = Adviser()
    adviser.until = until
    run = run_of(Given(kernels, [2 * PAGES]), ONE, 1, prefetch="region", placement=adviser)
    assert run.counts["pages_written_back"] == back
