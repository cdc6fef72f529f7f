"""Recordings: layers by closed form, their sums in the books, windows, folding and stories."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import BooksError, TidegateError
from tidegate.experiments import RunSpec, store
from tidegate.simulation.gpu.recorded_moves import MARKS
from tidegate.simulation.gpu.simulation import check_books
from tidegate.simulation.recorded import Recording, read_recording
from tidegate.simulation.recording import LAYERS, ROWS, Window
from traces import SMALL, Given, Kernel, Touch, machine, simulation_of

PAGES = SMALL.pages_per_region


def record(pages, regions, frames, window=None, prefetcher="none", policy="fifo", slots=1):
    """Touch these pages one after another, with a recording; return it and the simulation."""
    trace = Given([Kernel([[Touch(p) for p in pages]])], [regions * PAGES])
    how = {"eviction": policy, "prefetch": prefetcher, "window": window or Window()}
    s = simulation_of(trace, machine(slots=slots), frames, **how)
    s.run()
    return read_recording(s.memory, MARKS, int(s.books["touches"][0]), s.memory.region_pages), s


@pytest.mark.slow
@pytest.mark.closed_form
def test_a_cyclic_scan_faults_and_evicts_every_region_in_every_pass():
    regions, frames, passes = 6, 4, 5
    pages = [r * PAGES for _ in range(passes) for r in range(regions)]
    r, _ = record(pages, regions, frames)
    assert r.layers["touches"].sum(axis=0).tolist() == [passes] * regions
    assert r.layers["faults"].sum(axis=0).tolist() == [passes] * regions
    # the first four passes over a region end with its eviction; the last leaves ``frames`` near
    assert r.layers["evictions"].sum() == passes * regions - frames
    assert r.layers["residency"][-1].tolist() == [0, 0, 1, 1, 1, 1]
    assert (r.layers["residency"].sum(axis=1) <= frames).all()


@pytest.mark.closed_form
def test_every_touch_is_in_the_bin_of_its_number():
    regions = 4
    pages = [r * PAGES for r in range(regions)] * 8  # 32 touches: a bin each
    r, _ = record(pages, regions, regions)
    assert (r.bins, r.touches_per_bin, r.cells) == (32, 1, regions)
    assert r.layers["touches"].argmax(axis=1).tolist() == list(range(regions)) * 8
    assert r.books["touches"].tolist() == list(range(1, 33))
    assert (np.diff(r.books["time"]) >= 0).all()


@pytest.mark.closed_form
def test_bins_fold_and_lose_nothing():
    regions, touches = 3, 5 * ROWS + 7
    pages = [(i % regions) * PAGES for i in range(touches)]
    r, s = record(pages, regions, 2)
    assert r.touches_per_bin == 8
    assert r.bins == -(-touches // 8)
    assert r.layers["touches"].sum(axis=1)[:-1].tolist() == [8] * (r.bins - 1)
    assert r.layers["touches"].sum() == touches
    assert r.layers["faults"].sum() == s.books["faults"][0]
    assert r.books["touches"][-1] == touches
    assert r.books["time"][-1] == s.books["front"][0]


@pytest.mark.closed_form
def test_prefetched_in_vain():
    """With whole regions prefetched and one page of each used, the rest is unused."""
    regions = 8
    r, _ = record([i * PAGES for i in range(regions)], regions, 2, prefetcher="region")
    assert r.layers["prefetched"].sum(axis=0).tolist() == [PAGES - 1] * regions
    assert r.layers["unused"].sum(axis=0).tolist() == [PAGES - 1] * (regions - 2) + [0, 0]
    assert set(r.layers["residency"].sum(axis=1).tolist()) <= {PAGES, 2 * PAGES}


@settings(max_examples=25, deadline=None)
@given(
    pages=st.lists(st.integers(0, 12 * PAGES - 1), min_size=1, max_size=400),
    frames=st.integers(1, 12),
    policy=st.sampled_from(["lrm", "mru", "lru", "lru-ideal"]),
    slots=st.sampled_from([1, 3]),
    prefetcher=st.sampled_from(["none", "tree", "region"]),
)
def test_layers_add_up_and_change_nothing(pages, frames, policy, slots, prefetcher):
    trace = Given([Kernel([[Touch(p) for p in pages[i::5]] for i in range(5)])], [12 * PAGES])
    how = {"eviction": policy, "prefetch": prefetcher}
    plain, recorded = (
        simulation_of(trace, machine(slots=slots), frames, **how, window=window)
        for window in (None, Window())
    )
    plain.run()
    recorded.run()  # check_books holds every layer against the books
    assert plain.books.tobytes() == recorded.books.tobytes()
    r = read_recording(recorded.memory, MARKS, len(pages), recorded.memory.region_pages)
    count = np.bincount(np.array(pages) // PAGES, minlength=trace.regions)
    assert r.layers["touches"].sum(axis=0).tolist() == count.tolist()
    assert r.layers["residency"][-1].tolist() == recorded.memory.resident.tolist()


def test_books_do_not_balance_with_a_wrong_layer():
    _, s = record([0, PAGES, 0], 2, 1)
    s.memory.recorded[LAYERS.index("faults"), 0, 0] += 1
    with pytest.raises(BooksError, match="recorded faults add up"):
        check_books(s)


@pytest.mark.oracle
def test_a_window_shows_the_same_in_more_detail():
    regions, touches = 9, 6 * ROWS
    pages = [(7 * i % regions) * PAGES for i in range(touches)]
    whole, _ = record(pages, regions, 4)
    window = Window(first_touch=2048, touches=1024, first_region=3, regions=4)
    part, _ = record(pages, regions, 4, window)
    assert (part.touches_per_bin, part.bins, part.cells) == (1, 1024, 4)
    at = slice(2048 // whole.touches_per_bin, 3072 // whole.touches_per_bin)
    for layer in ("touches", "faults", "evictions"):
        seen = part.layers[layer].reshape(-1, whole.touches_per_bin, 4).sum(axis=1)
        assert seen.tolist() == whole.layers[layer][at, 3:7].tolist(), layer
    ends = part.layers["residency"][whole.touches_per_bin - 1 :: whole.touches_per_bin]
    assert ends.tolist() == whole.layers["residency"][at, 3:7].tolist()
    assert part.before["touches"] <= 2048 <= part.books["touches"][0]


@pytest.mark.closed_form
def test_the_story_of_a_region():
    """Region 0 of three, in two frames: FIFO evicts it before it is used again."""
    pages = [0, 0, PAGES, 2 * PAGES, 0, 2 * PAGES]
    r, _ = record(pages, 3, 2, Window(first_region=0, regions=1))
    assert [(e["what"], e["why"], e["touch"], e["touches"]) for e in r.story] == [
        ("came", "fault", 0, 0),
        ("left", "victim", 3, 2),
        ("came", "fault", 4, 2),
    ]


def test_many_regions_share_cells():
    trace = Given([Kernel([[Touch(0), Touch(9000 * PAGES)]])], [9001 * PAGES])
    s = simulation_of(trace, machine(slots=1), 10, window=Window())
    s.run()
    r = read_recording(s.memory, MARKS, 2, s.memory.region_pages)
    assert (r.regions_per_cell, r.cells, r.regions) == (2, 4501, 9001)
    assert np.flatnonzero(r.layers["touches"].sum(axis=0)).tolist() == [0, 4500]


def test_a_recording_is_kept_with_its_run(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEGATE_CACHE", str(tmp_path))
    spec = RunSpec("cyclic(bytes=32MiB)", near="24MiB")
    run, recording = spec.record()
    assert run.key == spec.key == spec.run().key
    again, loaded = spec.record()
    assert again.from_store
    assert not run.from_store
    for layer in LAYERS:
        assert np.array_equal(recording.layers[layer], loaded.layers[layer])
    assert loaded.before == recording.before
    assert loaded.regions == recording.regions
    file = next((tmp_path / "recordings").rglob("*.npz"))
    file.write_bytes(file.read_bytes()[:100])
    assert store.load_recording(run.key) is None
    with pytest.raises(TidegateError, match="damaged"):
        Recording.load(file)


def test_runs_are_the_same_with_and_without_a_recording():
    spec = RunSpec("matmul(bytes=16MiB)", oversubscribe="50%", eviction="cp")
    run, _ = spec.record(cache=False)
    assert run.summary == spec.run(cache=False).summary


@pytest.mark.parametrize("bad", [{"first_touch": -1}, {"touches": 0}, {"regions": 0}])
def test_bad_windows(bad):
    with pytest.raises(TidegateError, match="must be at least"):
        Window(**bad)


def test_a_window_behind_the_last_region():
    with pytest.raises(TidegateError, match="first_region must be below 3"):
        record([0], 3, 2, Window(first_region=3))


def test_three_tiers_have_a_timeline():
    spec = RunSpec("gmt-Srad", scale="1/64", tiering="tier-reuse")
    run = spec.run(cache=False)
    rows = run.timeline
    assert rows["time"].is_sorted()
    assert rows["touches"].is_sorted()
    last = rows.tail(1).to_dicts()[0]
    assert last["time"] == pytest.approx(run.time)
    assert {name: last[name] for name in last if name != "time"} == {
        name: run.counts[name] for name in last if name != "time"
    }
    assert 1 < len(rows) <= 1025


def test_recordings_of_simulations_without_a_window():
    prepared = RunSpec("cyclic(bytes=8MiB)").resolve()
    with pytest.raises(TidegateError, match="must have a window"):
        prepared.recording()
