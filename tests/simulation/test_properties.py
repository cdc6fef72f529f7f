"""Properties of every run: books balance, segments and pauses do not matter, runs repeat bit for
bit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import BooksError
from tidegate.experiments import Run
from tidegate.policies.interface.page_flags import NEAR
from tidegate.policies.registries import eviction, placement, prefetch
from tidegate.policy import EvictionPolicy
from tidegate.simulation.gpu import simulation as simulation_module
from tidegate.simulation.gpu.memory import STALLED
from tidegate.simulation.gpu.simulation import check_books
from traces import PAGES, Given, Kernel, machine, reads, run_of, simulation_of
from worlds import machines, presets, traces

EVICTIONS, PREFETCHES, PLACEMENTS = eviction.names(), prefetch.names(), placement.names()
PLANS = ("greedy", "look-ahead", "offload", "pin-and-stream")
COPYING = (*PLANS, "tide")  # by the copy streams


def outcome(run: Run) -> dict[str, Any]:
    """Return all results of a run, to be compared bit for bit."""
    return {"counts": run.counts, "parts": run.parts, "busy": run.busy, "tables": run.tables}


# these two compile for twenty seconds with all that they are drawn with
LONG = [pytest.param(p, marks=pytest.mark.slow) if p in ("belady", "leu") else p for p in EVICTIONS]


@pytest.mark.parametrize("policy", LONG)
@settings(deadline=None, max_examples=40, derandomize=True)
@given(
    traces(),
    machines() | presets(),
    st.integers(1, 9),
    st.sampled_from(PREFETCHES),
    st.sampled_from(PLACEMENTS),
    st.booleans(),
    st.booleans(),
)
def test_books_balance_whatever_is_run(
    policy, trace, on, frames, ahead, place, dirty_only, compiled
):
    """The run's own checks (check_books, and finished() of the policy), and sums of its counts."""
    how = {
        "eviction": policy,
        "prefetch": ahead,
        "placement": place,
        "dirty_only": dirty_only,
        "compiled": compiled,
    }
    if place == "explicit":  # a program that copies what it uses runs only where all of that fits
        frames = max(frames, trace.regions)
    run = run_of(trace, on, frames, **how)
    c = run.counts
    touches = sum(len(block) for kernel in trace.kernels for block in kernel.blocks)
    assert c["touches"] == touches == sum(run.launches["touches"])
    # a batch whose first victim was served in the same turn is cut without a fault
    assert c["raw_faults"] >= max(c["faults"], c["batches"]) >= 0
    # these evict neighbours, too; plans evict by themselves
    assert c["decisions"] >= c["evictions"] or policy in ("sle", "tbne") or place in PLANS
    assert c["pages_in"] == c["faults"] + c["pages_prefetched"]
    out = c["pages_evicted"] + c["pages_sampled"]
    assert c["pages_in"] + c["pages_home"] == out + sum(run.objects["pages_near"])
    # a prefetched page that was left far never came in
    assert c["pages_home"] <= c["pages_sampled"] + c["observations"]
    where = placement.make(place)
    managed = where.managed
    at_the_end = sum(run.objects["pages_near"]) if where.copies_results else 0
    assert c["pages_evicted"] + at_the_end >= c["pages_written_back"]
    assert c["pages_evicted"] == c["pages_written_back"] or dirty_only or not managed
    assert c["pages_evicted"] >= c["pages_unused"]
    per_region = trace.geometry.pages_per_region if on.near.frame == "page" else 1
    assert c["frames_peak"] <= min(frames, trace.regions) * per_region
    assert c["hits"] >= 0
    assert sum(run.objects["faults"]) == c["faults"] == sum(run.launches["faults"])
    assert min(run.parts.values()) >= 0
    if not where.copies_results:
        assert run.time == pytest.approx(run.launches["end"][-1], rel=1e-9)
    assert run.time >= run.launches["end"][-1] * (1 - 1e-9)
    # streams copy beside the driver, and what they handle is no work of the driver
    streams = not managed or place in COPYING
    hidden = run.parts["transfer_in"] + run.parts["transfer_out"] + run.parts["policy_overhead"]
    hidden += 0.0 if streams else run.parts["fault_handling"]
    copies = run.busy["link_in"] + run.busy["link_out"] if streams else 0.0
    assert hidden <= (run.busy["driver"] + copies) * (1 + 1e-9)
    assert run.timeline["time"].is_sorted()
    assert run.timeline["touches"].is_sorted()


@settings(deadline=None, max_examples=100, derandomize=True)
@given(
    traces(),
    machines(),
    st.integers(1, 9),
    st.sampled_from(("none", "region", "tree(threshold=51)")),
    st.sampled_from((512, 4096)),
)
def test_faults_split_copies_and_move_the_same_pages(trace, on, frames, ahead, asked):
    """A fault splits at most one copy; where copies cost nothing, that changes nothing else."""

    def played(fault_bytes: int | None) -> Any:
        driver = replace(on.driver, fault_bytes=fault_bytes)
        link = replace(on.link, run_overhead=0.0)
        simulation = simulation_of(
            trace, replace(on, driver=driver, link=link), min(frames, trace.regions), prefetch=ahead
        )
        simulation.run()
        return simulation.books[0]

    whole, split = played(None), played(asked)
    assert split["raw_faults"] >= split["faults"]
    runs = whole["copies_in"]
    assert runs <= split["copies_in"] <= runs + split["faults"]
    if asked >= trace.geometry.page:
        assert runs == split["copies_in"]
    for name in split.dtype.names:
        if name != "copies_in":
            assert split[name] == whole[name], name
    parts = "running", "fault_handling", "transfer_in", "transfer_out", "policy_overhead"
    assert sum(split[part] for part in parts) == pytest.approx(split["front"], rel=1e-9)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(traces(), machines(), st.integers(1, 9), st.booleans())
def test_without_the_new_constants_utlbs_of_any_size_make_no_difference(
    trace, on, frames, page_frames
):
    """A machine of one µTLB whose window takes a batch raises one fault a block, as without."""
    near = replace(on.near, frame="page" if page_frames else "region", utlb_faults=None)
    one, other = (
        run_of(trace, replace(on, near=replace(near, utlb_sms=sms)), min(frames, trace.regions))
        for sms in (1, 3)
    )
    assert outcome(one) == outcome(other)


@pytest.mark.slow
@pytest.mark.parametrize("policy", EVICTIONS)
@settings(deadline=None, max_examples=40, derandomize=True)
@given(traces(), machines(), st.integers(1, 9), st.sampled_from(PREFETCHES), st.data())
def test_how_a_launch_is_cut_into_segments_makes_no_difference(
    policy, trace, on, frames, ahead, data
):
    def cut(kernel: Kernel) -> Kernel:
        return replace(
            kernel, cuts=tuple(data.draw(st.lists(st.integers(0, len(kernel.blocks)), max_size=4)))
        )

    whole = Given(
        [replace(kernel, cuts=()) for kernel in trace.kernels],
        [o.pages for o in trace.objects],
        trace.geometry,
    )
    parts = Given(
        [cut(kernel) for kernel in trace.kernels], [o.pages for o in trace.objects], trace.geometry
    )
    run, other = (run_of(t, on, frames, eviction=policy, prefetch=ahead) for t in (whole, parts))
    assert outcome(run) == outcome(other)


@settings(deadline=None, max_examples=40, derandomize=True)
@given(traces(), machines(), st.integers(1, 9), st.sampled_from(EVICTIONS), st.integers(1, 7))
def test_breaks_for_progress_make_no_difference(trace, on, frames, policy, budget):
    run = run_of(trace, on, frames, eviction=policy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation_module, "_BUDGET", budget)
        assert outcome(run_of(trace, on, frames, eviction=policy)) == outcome(run)


def test_progress_adds_up_to_the_touches(monkeypatch):
    monkeypatch.setattr(simulation_module, "_BUDGET", 10)
    steps: list[int] = []
    simulation = simulation_of(
        Given([Kernel([reads(range(PAGES))] * 9)] * 3, [PAGES]), machine(2), 1
    )
    simulation.run(steps.append)
    assert sum(steps) == 27 * PAGES
    assert len(steps) > 10


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    traces(), machines(), st.integers(1, 9), st.sampled_from(EVICTIONS), st.sampled_from(PREFETCHES)
)
def test_a_run_repeats_bit_for_bit(trace, on, frames, policy, ahead):
    once, again = (run_of(trace, on, frames, eviction=policy, prefetch=ahead) for _ in range(2))
    assert once == again


def test_launches_blocks_and_segments_without_touches_do_nothing():
    full = [Kernel([reads(range(2 * PAGES))])]
    hollow = [
        Kernel([]),
        Kernel([[], [], reads(range(2 * PAGES)), []], cuts=(0, 1, 2, 2, 3, 4)),
        Kernel([[]] * 9),
    ]
    on = machine(2, launch_overhead=0.0)
    run, other = (run_of(Given(kernels, [2 * PAGES]), on, 1) for kernels in (full, hollow))
    assert run.counts == other.counts
    assert run.time == other.time


# The timeline


def test_the_timeline_has_a_row_per_turn_and_thins_out_when_there_are_many():
    short = run_of(Given([Kernel([reads(range(500))])], [500]), machine(), 63)
    assert short.timeline["batches"].to_list() == list(range(1, 501))
    long = run_of(Given([Kernel([reads(range(5000))])], [5000]), machine(), 625)
    rows = long.timeline["batches"]
    assert 512 <= len(rows) <= 1024
    assert 1 <= rows.diff().min() <= rows.diff().max() <= 8  # three times halved
    assert 5000 - rows[-1] <= 8


# Books that do not balance


def finished_simulation() -> Any:
    simulation = simulation_of(
        Given([Kernel([reads(range(6 * PAGES))] * 2)], [6 * PAGES]), machine(2), 3, prefetch="tree"
    )
    simulation.run()
    check_books(simulation)
    return simulation


def add(counter: str, amount: float = 1) -> Any:
    def tamper(simulation: Any) -> None:
        simulation.books[counter] += amount

    return tamper


def stall_a_slot(simulation: Any) -> None:
    simulation.memory.slot_status[0] = STALLED


def bring_a_page(simulation: Any) -> None:
    simulation.memory.page_state[0] |= NEAR


def add_to_region(array: str) -> Any:
    def tamper(simulation: Any) -> None:
        getattr(simulation.memory, array)[0] += 1

    return tamper


def forget_a_launch(simulation: Any) -> None:
    simulation.launches.pop()


TAMPERED = [
    ("pages in - pages out = pages resident", add("pages_in")),
    ("pages in - pages out = pages resident", add("pages_evicted")),
    ("pages in - pages out = pages resident", bring_a_page),
    ("pages in - pages out = pages resident", add_to_region("resident")),
    ("pages in - pages out = pages resident", add("pages_sampled")),
    ("pages in - pages out = pages resident", add("pages_home")),
    ("observed regions have their samples out", add("sampled_n")),
    ("observed regions have their samples out", add_to_region("sampled")),
    ("observed regions have their samples out", add_to_region("observed")),
    ("frames used = frames held", add("frames_used")),
    ("frames used within capacity", add("frames_peak", 10)),
    ("every stalled slot woken", add("queue_n")),
    ("every stalled slot woken", stall_a_slot),
    ("time = sum of its parts", add("front", 1000.0)),
    ("time = sum of its parts", add("running", 1000.0)),
    ("time = sum of its parts", add("fault_handling", -1000.0)),
    ("time = sum of its parts", add("transfer_in", 1000.0)),
    ("time = sum of its parts", add("transfer_out", 1000.0)),
    ("time = sum of its parts", add("policy_overhead", 1000.0)),
    ("touches = launches' touches", add("touches")),
    ("touches = launches' touches", forget_a_launch),
    ("evictions by region add up", add("evictions")),
    ("evictions by region add up", add_to_region("region_evictions")),
    ("faults by region add up", add_to_region("region_faults")),
    ("each fault brought its page", add("pages_prefetched")),
]


@pytest.mark.parametrize(("account", "tamper"), TAMPERED)
def test_every_account_is_checked(account, tamper):
    simulation = finished_simulation()
    tamper(simulation)
    with pytest.raises(BooksError, match=account) as error:
        check_books(simulation)
    assert "\n" not in str(error.value)


class Embezzler(EvictionPolicy):
    """Removes a fault from the books, past the view."""

    def on_fault(self, region: int) -> None:
        self.memory._m.books["faults"] -= 1
        self.order.move_to_tail(region)

    def on_eviction(self, region: int) -> None:
        self.order.remove(region)

    def victim(self) -> int:
        return self.order.head


def test_a_run_whose_books_do_not_balance_does_not_end_well():
    with pytest.raises(BooksError):
        run_of(Given([Kernel([reads([0])])], [1]), machine(), 1, eviction=Embezzler())
