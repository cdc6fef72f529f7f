"""Expansion: axes, zips and seeds become runs; what is wrong is refused in one line."""

from __future__ import annotations

import pytest

from tidegate.errors import TidegateError
from tidegate.experiments import RunSpec, Sweep
from tidegate.experiments.sweeps.expansion import expand_runs, look_up


def test_axes_are_combined_and_zips_go_side_by_side():
    specs = expand_runs(
        {"machine": "rtx3090-pcie4"},
        {"workload": ["cyclic", "zipf"], "eviction": ["lrm", "random(seed=1|2)"]},
        [{"near": ["8MiB", "16MiB"], "slots": [8, 16]}],
    )
    assert len(specs) == 2 * 3 * 2
    assert specs[0] == RunSpec("cyclic", "rtx3090-pcie4", eviction="lrm", near="8MiB", slots=8)
    assert {(s.near, s.slots) for s in specs} == {("8MiB", 8), ("16MiB", 16)}
    assert {s.eviction for s in specs} == {"lrm", "random(seed=1)", "random(seed=2)"}


def test_seeds_go_to_what_takes_one_and_other_runs_are_not_repeated():
    specs = expand_runs({}, {"workload": ["cyclic", "zipf(touches=9)"], "eviction": ["lrm"]}, (), 3)
    assert [s.workload for s in specs] == [
        "cyclic",
        *(f"zipf(touches=9, seed={i})" for i in range(3)),
    ]
    (spec,) = expand_runs({"eviction": "random"}, {"workload": ["zipf(seed=5)"]}, (), [7])
    assert (spec.workload, spec.eviction) == ("zipf(seed=5)", "random(seed=7)")


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (({}, {"workload": ["cyclic"], "evictoin": ["lrm"]}), "did you mean 'eviction'"),
        (({"workload": "zipf"}, {"workload": ["cyclic"]}), "workload is given twice"),
        (({"near": "1GiB"}, {"workload": ["zipf"], "fits": ["50%"]}), "contradict one another"),
        (({}, {"workload": ["zipf"], "near": []}), "axis near is empty, so the sweep has no runs"),
        (({}, {"workload": "zipf"}), "axis workload must be a list"),
        (({}, {"workload": ["zipf", "zipf"]}), "axis workload has zipf twice"),
        (({}, {"near": ["1GiB"]}), "a sweep needs a workload"),
        (({}, {"workload": ["zipf"]}, [{"near": ["1GiB"], "slots": [1, 2]}]), "near has 1, slots"),
        (({}, {"workload": ["zipf"]}, [{"near": "1GiB"}]), "near of a zip must be a list"),
        (({}, {"workload": ["cyclic"]}, (), 2), "no workload or policy of the sweep takes one"),
        (({}, {"workload": ["zipf"]}, (), [1, 1]), "a list of different seeds"),
        (({}, {"workload": ["zipf"]}, (), 0), "seeds must be a whole number, at least 1"),
        (
            ({}, {"workload": ["zipf"], "slots": range(1, 4000), "near": range(4000)}),
            "at most 10,000,000 runs",
        ),
    ],
)
def test_what_is_wrong_is_refused(given, line):
    with pytest.raises(TidegateError, match=line):
        expand_runs(*given)


def test_unknown_names_are_refused_before_anything_runs():
    for field, name in (
        ("eviction", "lrmm"),
        ("workload", "zipff"),
        ("machine", "rtx"),
        ("system", "uvmm"),
        ("prefetch", "treee"),
    ):
        with pytest.raises(TidegateError, match=f"unknown .*{name}"):
            look_up([RunSpec(**{"workload": "zipf", field: name})])


def test_a_sweep_of_nothing_is_refused(tmp_path):
    with pytest.raises(TidegateError, match="at least one run, got none"):
        Sweep([], tmp_path)
    with pytest.raises(TidegateError, match="a sweep needs RunSpecs"):
        Sweep(["cyclic"], tmp_path)  # type: ignore[list-item]
