"""Recordings over three tiers: layers by closed form, and the same run with and without one."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.errors import BooksError
from tidegate.experiments import RunSpec, TierModel
from tidegate.simulation.recording import TIER_LAYERS, Window
from tidegate.simulation.tiers.books import check_books

PAGES, PASSES, NEAR, MIDDLE = 32, 4, 8, 16
SCAN = RunSpec(
    f"cyclic(bytes={PAGES * 64}KiB, passes={PASSES})",
    "a100-pcie3-ssd",
    tiering="tier-order",
    near=f"{NEAR * 64}KiB",
    middle=f"{MIDDLE * 64}KiB",
)
SPECS = [
    SCAN,
    RunSpec("gmt-Srad", scale="1/256", tiering="tier-reuse", tiers=TierModel(jitter=8)),
    RunSpec("zipf(bytes=8MiB)", "a100-pcie3-ssd", tiering="hmm", near="1MiB", middle="2MiB"),
]


@pytest.mark.closed_form
def test_a_cyclic_scan_reads_every_page_from_the_far_tier_in_every_pass():
    run, r = SCAN.record(cache=False)
    assert (r.cells, r.bins, r.touches_per_bin) == (PAGES, PAGES * PASSES // 2, 2)
    assert r.layers["touches"].sum(axis=0).tolist() == [PASSES] * PAGES
    assert r.layers["far_reads"].sum(axis=0).tolist() == [PASSES] * PAGES
    # at the end the last pages touched are near, and those before them in the middle
    assert np.flatnonzero(r.layers["residency"][-1]).tolist() == list(range(PAGES - NEAR, PAGES))
    middle = list(range(PAGES - NEAR - MIDDLE, PAGES - NEAR))
    assert np.flatnonzero(r.layers["middle"][-1]).tolist() == middle
    assert (r.layers["residency"].sum(axis=1) <= NEAR).all()
    assert (r.layers["middle"].sum(axis=1) <= MIDDLE).all()
    assert r.books["time"][-1] == pytest.approx(run.time)


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: str(s.tiering))
def test_a_recorded_run_is_the_same_run(spec):
    plain, (run, r) = spec.run_watched(), spec.record(cache=False)
    assert (run.time, run.counts) == (plain.time, plain.counts)
    assert tuple(r.layers) == TIER_LAYERS
    assert r.layers["faults"].sum() == run.counts["faults"]
    assert r.layers["spills"].sum() == run.counts["middle_spilled"]


@pytest.mark.closed_form
def test_the_story_of_a_page_names_the_tiers():
    _, r = SCAN.record(Window(first_region=0, regions=1), cache=False)
    one_pass = [
        ("came", "from the SSD"),
        ("left", "to host memory"),
        ("left host memory", "to the SSD"),
    ]
    assert [(line["what"], line["why"]) for line in r.story] == one_pass * PASSES
    assert [line["touch"] for line in r.story[:3]] == [0, NEAR, NEAR + MIDDLE]
    assert [line["touches"] for line in r.story[:4]] == [0, 1, 1, 1]


def test_a_layer_that_does_not_add_up_is_found():
    s = SCAN.resolve(Window()).simulation
    s.run()
    s.memory.recorded[TIER_LAYERS.index("spills"), 0, 0] += 1
    with pytest.raises(BooksError, match="recorded spills add up"):
        check_books(s)
