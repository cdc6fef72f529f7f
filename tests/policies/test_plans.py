"""Plans by tensor: times and traffic by formula, and what a forecast says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate
from op_lists import MIB, small_ops
from tidegate.simulation.gpu.forecast import forecast
from tidegate.trace.geometry import Geometry
from tidegate.trace.ops import OpTrace, load_ops
from traces import PAGE, PAGES, Given, Kernel, machine, reads, run_of

ONE = machine()
LONG, SHORT = 100_000.0, 1000.0
IN = ONE.link.run_overhead + PAGES * PAGE / ONE.link.inward
OUT = PAGES * PAGE / ONE.link.outward
PLANS = ("look-ahead", "greedy", "offload", "pin-and-stream")
RECORDINGS = Path(__file__).parents[1] / "record" / "recordings"


def kernel(*objects: int, duration: float = LONG, write: bool = False, **told: Any) -> Kernel:
    """Return a kernel that uses objects of one region each."""
    touches = [t for n in objects for t in reads(range(n * PAGES, (n + 1) * PAGES), write=write)]
    return Kernel([touches], told={"duration": duration, **told})


def trace(kernels: list[Kernel], objects: int, **how: Any) -> Given:
    return Given(kernels, [PAGES] * objects, **how)


def approx(value: float) -> Any:
    return pytest.approx(value, rel=1e-9)


@pytest.mark.closed_form
@pytest.mark.parametrize("plan", PLANS)
def test_what_fits_is_copied_once_and_never_faults(plan):
    run = run_of(trace([kernel(n) for n in (0, 1, 2, 0)], 3), ONE, 3, placement=plan)
    assert run.time == approx(IN + 4 * LONG)
    assert run.counts["faults"] == run.counts["evictions"] == 0
    assert run.counts["pages_in"] == 3 * PAGES


@pytest.mark.closed_form
@pytest.mark.parametrize(("write", "longest"), [(False, IN), (True, OUT + IN)])
def test_look_ahead_hides_copies_behind_kernels(write, longest):
    """0 leaves while 1 is used, so that 2 comes; 1 leaves while 2 is used, so that 0 comes."""
    assert longest < LONG
    kernels = [kernel(n, write=write) for n in (0, 1, 2, 0)]
    run = run_of(trace(kernels, 3), ONE, 2, placement="look-ahead")
    assert run.time == approx(IN + 4 * LONG)
    assert run.counts["faults"] == run.counts["decisions"] == 0
    assert run.counts["pages_in"] == 4 * PAGES
    assert run.counts["pages_written_back"] == (2 * PAGES if write else 0)


@pytest.mark.closed_form
def test_room_that_is_made_late_is_made_where_nothing_is_needed_again():
    """2 comes when it is needed: 1 leaves, which no launch uses any more, and 0 stays."""
    kernels = [kernel(n) for n in (0, 1, 2, 0)]
    run = run_of(trace(kernels, 3), ONE, 2, placement="look-ahead(ahead=0)")
    assert run.time == approx(2 * IN + 4 * LONG)
    assert run.counts["pages_in"] == 3 * PAGES


@pytest.mark.closed_form
@pytest.mark.parametrize(("objects", "frames", "passes"), [(8, 6, 3), (12, 8, 4), (10, 9, 2)])
def test_pinned_pieces_are_copied_once_and_streamed_ones_every_time(objects, frames, passes):
    """Two frames are for what passes through; near memory's others hold what is pinned."""
    order = [kernel(n, duration=SHORT) for _ in range(passes) for n in range(objects)]
    run = run_of(trace(order, objects), ONE, frames, placement="pin-and-stream(buffer=0)")
    pinned = frames - 2
    copied = objects + (passes - 1) * (objects - pinned)
    # what is still there when the last pass ends needs no copy
    assert copied - 2 <= run.counts["pages_in"] / PAGES <= copied
    assert run.time == pytest.approx(run.counts["pages_in"] / PAGES * IN, rel=0.1)
    driver = run_of(trace(order, objects), ONE, frames, prefetch="region")
    assert driver.counts["pages_in"] == passes * objects * PAGES  # it evicts what is used next


@pytest.mark.closed_form
def test_offload_copies_out_what_idles_and_back():
    """0 to 3 are made, then used in the opposite order. 0 leaves; when 3 is not used any more, it
    leaves in its turn, and 0 comes back, all beside the kernels.
    """
    kernels = [kernel(n, write=True) for n in range(4)] + [kernel(n) for n in (3, 2, 1, 0)]
    made = trace(kernels, 4, unwritten=[f"o{n}" for n in range(4)])
    run = run_of(made, ONE, 3, placement="offload")
    assert run.counts["pages_written_back"] == 2 * PAGES
    assert run.counts["pages_in"] == PAGES
    assert run.counts["pages_born"] == 4 * PAGES
    assert run.counts["faults"] == 0
    assert run.time == approx(8 * LONG)


@pytest.mark.closed_form
def test_greedy_moves_no_more_than_what_exceeds_memory():
    """One piece too many: the one that idles longest leaves, and comes back."""
    kernels = [kernel(n, write=True) for n in range(4)] + [kernel(n) for n in (3, 2, 1, 0)]
    made = trace(kernels, 4, unwritten=[f"o{n}" for n in range(4)])
    run = run_of(made, ONE, 3, placement="greedy")
    assert run.counts["pages_in"] == PAGES
    assert run.counts["pages_written_back"] == 2 * PAGES  # and what is not used any more
    assert run.time == approx(8 * LONG)


def test_data_that_die_are_not_moved():
    """Each launch makes a piece; the one before dies. Nothing is ever copied."""
    kernels = [
        kernel(n, write=True, frees=((n * PAGES - PAGES, n * PAGES),) if n else ())
        for n in range(6)
    ]
    made = trace(kernels, 6, unwritten=[f"o{n}" for n in range(6)])
    for plan in PLANS:
        run = run_of(made, ONE, 2, placement=plan)
        assert run.counts["pages_in"] == run.counts["pages_written_back"] == 0
        assert run.time == approx(6 * LONG)


def test_managed_memory_drops_what_is_only_read():
    kernels = [kernel(n) for n in (0, 1, 2, 0)]
    run = run_of(trace(kernels, 3), ONE, 2, placement="look-ahead(by=managed)")
    assert run.counts["pages_written_back"] == 0
    assert run.time > IN + 4 * LONG  # a driver's overheads are there


def test_a_launch_that_is_too_large_is_left_to_faults():
    kernels = [kernel(0, 1, 2, 3), kernel(0)]
    for plan in PLANS:
        run = run_of(trace(kernels, 4), ONE, 2, placement=plan)
        assert run.counts["faults"] > 0


@settings(max_examples=25, deadline=None)
@given(small_ops(), st.integers(2, 6), st.sampled_from(PLANS))
def test_books_balance_whatever_the_program(ops, frames, plan):
    laid = OpTrace(ops, Geometry())
    run = tidegate.RunSpec(laid, near=2 * MIB * frames, placement=plan).run(cache=False)
    assert run.counts["touches"] > 0
    assert run.counts["frames_peak"] <= frames


# The forecast


def test_a_piece_is_used_by_the_same_launches():
    """Object 0 has three regions; the second launch uses its last one only."""
    both = Kernel([reads(range(3 * PAGES))], told={"duration": LONG})
    last = Kernel([reads(range(2 * PAGES, 3 * PAGES), write=True)], told={"duration": SHORT})
    found = forecast(Given([both, last, both], [3 * PAGES]), ONE)
    assert found.first.tolist() == [0, 2]
    assert found.regions.tolist() == [2, 1]
    assert found.piece.tolist() == [0, 1, 1, 0, 1]
    assert found.next.tolist() == [2, 1, 2, 3, 3]
    assert found.written.tolist() == [False, False, True, False, False]
    assert found.duration.tolist() == [LONG, SHORT, LONG]
    assert found.live().tolist() == [3, 3, 3]
    assert found.used.tolist() == [n * PAGES * PAGE for n in (2, 1, 1, 2, 1)]


def test_data_that_died_are_not_used_again():
    kernels = [
        kernel(0, write=True, frees=((0, PAGES),)),
        kernel(1, write=True),
        kernel(0, write=True),
    ]
    found = forecast(trace(kernels, 2, unwritten=["o0", "o1"]), ONE)
    assert found.next.tolist() == [3, 3, 3]
    assert found.dies.tolist() == [True, False, False]
    assert found.dead.tolist() == [0, 1, 1, 1]
    assert found.live().tolist() == [1, 1, 1]
    assert not found.host.any()


def test_the_forecast_of_a_recording_has_its_tensors():
    """Every large tensor is a piece or several; the live regions are the peak, but for rounding."""
    ops = load_ops(RECORDINGS / "training.parquet")
    laid = OpTrace(ops, Geometry())
    found = forecast(laid, tidegate.load_machine("rtx3090-pcie4"))
    assert found.launches == len(ops.launches)
    live = found.live().max() * found.region_bytes
    assert 0.9 * ops.peak < live < 1.3 * ops.peak
    assert np.array_equal(np.unique(found.object), np.arange(len(laid.objects)))


def test_a_plan_beats_the_driver_on_recorded_programs():
    for name, plan in (("training", "look-ahead"), ("decode", "pin-and-stream")):
        path = RECORDINGS / f"{name}.parquet"
        planned = tidegate.run(path, oversubscribe="50%", placement=plan, cache=False)
        driver = tidegate.run(path, oversubscribe="50%", cache=False)
        assert planned.time < 0.7 * driver.time
        assert planned.counts["faults"] < 0.01 * driver.counts["faults"]
