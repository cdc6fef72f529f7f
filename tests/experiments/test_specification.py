"""Asks: what people say becomes the right machine, trace, capacity and policies, or one clear line."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

import tidegate
from tidegate.errors import TidegateError, UnknownName
from tidegate.experiments import RunSpec
from tidegate.experiments.naming import spell
from tidegate.machine.machine import load_machine
from tidegate.policies.registries import prefetch
from tidegate.trace import save_trace
from tidegate.workloads import workloads
from traces import FLAT, PAGE, PAGES, Given, Kernel, flat, machine, one_block, reads, run_of

MIB = 1 << 20
REGION = PAGES * PAGE


@pytest.mark.parametrize(
    ("asked", "frames"),
    [
        ({"near": "24MiB"}, 12),
        ({"near": 5 * MIB}, 2),
        ({"near": "100MiB"}, 50),
        ({}, 16),  # 50 % more than fits: 48 MiB in 32 MiB
        ({"oversubscribe": "50%"}, 16),
        ({"oversubscribe": 0.5}, 16),
        ({"oversubscribe": "0%"}, 24),
        ({"oversubscribe": "100%"}, 12),
        ({"oversubscribe": "1/5"}, 20),
    ],
)
def test_capacity_is_whole_regions(asked, frames):
    assert RunSpec("cyclic(bytes=48MiB)", **asked).prepare().frames == frames


BAD = [
    (
        {"near": "8MiB", "oversubscribe": "50%"},
        "near and oversubscribe were both given; they say the same thing, give one",
    ),
    (
        {"near": "1MiB"},
        "near memory of 1.00 MiB cannot hold one region of 2.00 MiB; give it more, or the workload more bytes",
    ),
    ({"scale": 0}, "a scale of 0 is none; expected something like 1/8"),
    ({"scale": "big"}, "'big' is not a share; expected something like 50%, 1/8 or 0.5"),
    ({"samples": -1}, "-1 samples are none; expected at least 1, or 0 to adapt the number"),
    ({"observed": 0}, "0 observed regions are none; expected at least 1"),
    (
        {"oversubscribe": "-10%"},
        "oversubscribe=-10% is negative; 0% means that everything just fits",
    ),
    ({"oversubscribe": "lots"}, "'lots' is not a share; expected something like 50%, 1/8 or 0.5"),
    ({"slots": 0}, "slots=0 cannot run anything; expected at least 1"),
    ({"bytes": "1GiB"}, "'cyclic(bytes=48MiB)' gives bytes, and so does --bytes; give it once"),
    ({"geometry": "64KiB"}, "geometry must be PAGE/REGION, such as 64KiB/2MiB, got '64KiB'"),
    ({"geometry": "64KiB/4KiB"}, "region must be at least a page of 65536 bytes, got 4096 bytes"),
    ({"geometry": "60KiB/2MiB"}, "page must be a power of two, got 61440 bytes; try page=64KiB"),
]


@pytest.mark.parametrize(("asked", "complaint"), BAD)
def test_what_cannot_be_run_is_refused_in_one_line(asked, complaint):
    with pytest.raises(TidegateError) as error:
        RunSpec("cyclic(bytes=48MiB)", **asked).prepare()
    assert str(error.value) == complaint


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"eviction": "lrux"}, "unknown eviction 'lrux'; did you mean"),
        ({"prefetch": "trees"}, "unknown prefetch 'trees'; did you mean 'tree'"),
        ({"placement": "hosts"}, "unknown placement 'hosts'; did you mean 'host'"),
        ({"system": "uwm"}, "unknown system 'uwm'; did you mean 'uvm'"),
        ({"machine": "rtx3090"}, "unknown machine 'rtx3090'; did you mean 'rtx3090-pcie4'"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(asked, complaint):
    with pytest.raises(UnknownName, match=complaint):
        RunSpec("cyclic(bytes=48MiB)", **asked).prepare()
    with pytest.raises(UnknownName, match="unknown workload 'cyclics'; did you mean 'cyclic'"):
        RunSpec("cyclics").prepare()


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"eviction": 5}, "5 is no eviction; expected a name, or a tidegate.EvictionPolicy"),
        (
            {"eviction": prefetch.find("tree")},
            "is no eviction; expected a name, or a tidegate.EvictionPolicy",
        ),
        (
            {"eviction": prefetch.make("tree")},
            "is no eviction; expected a name, or a tidegate.EvictionPolicy",
        ),
        ({"prefetch": ["tree"]}, "is no prefetch; expected a name, or a tidegate.PrefetchPolicy"),
        ({"near": ["8MiB"]}, "['8MiB'] is not a size"),
        ({"slots": "x"}, "slots='x' is not a whole number"),
        ({"samples": 1.5}, "samples=1.5 is not a whole number"),
        ({"workload": None}, "None is no workload; expected a name, or a tidegate.Workload"),
    ],
)
def test_what_is_of_another_kind_is_refused_in_one_line(asked, complaint):
    with pytest.raises(TidegateError, match=re.escape(complaint)):
        tidegate.run(**{"workload": "cyclic(bytes=48MiB)"} | asked)


@pytest.mark.parametrize("call", [tidegate.analyze, lambda given: save_trace(given, "x.parquet")])
def test_a_name_is_no_trace(call):
    with pytest.raises(
        TidegateError,
        match=re.escape(
            "trace must be a Trace, such as tidegate.RunSpec('matmul').trace(), got 'matmul'"
        ),
    ):
        call("matmul")


def test_a_trace_is_saved_under_a_name_that_can_be_run(tmp_path):
    with pytest.raises(TidegateError, match=r"expected a name that ends in \.parquet"):
        save_trace(RunSpec("cyclic(bytes=16MiB)").trace(), tmp_path / "x.txt")
    assert not any(tmp_path.iterdir())


def test_a_grid_is_made_of_asks():
    with pytest.raises(TidegateError, match="'cyclic' is no RunSpec"):
        tidegate.run_grid(["cyclic"])


def test_a_class_of_workloads_will_do():
    cyclic = workloads.find("cyclic")
    assert RunSpec(cyclic, bytes="16MiB", scale="1/2").trace().footprint == 8 * MIB
    assert RunSpec(cyclic).trace().identity() == RunSpec("cyclic").trace().identity()


def test_one_policy_or_size_may_stand_alone():
    race = tidegate.compare("cyclic(bytes=16MiB)", "lrm", near="8MiB", bound=False)
    assert (race.policies, race.sizes) == (["lrm"], [8 * MIB])
    with pytest.raises(TidegateError, match="no policy was given"):
        tidegate.compare("cyclic(bytes=16MiB)", [])
    with pytest.raises(TidegateError, match="has no keyword 'evict'"):
        tidegate.compare("cyclic(bytes=16MiB)", evict="lrm")


def test_what_was_found_is_one_short_line_at_a_prompt():
    race = tidegate.compare("cyclic(bytes=16MiB)", ["lrm"], near=["8MiB"])
    tiers = tidegate.compare("cyclic(bytes=16MiB)", tierings=["bam"], near=["8MiB"])
    assert repr(race) == "<Comparison on cyclic: lrm, belady with 8.00 MiB>"
    assert repr(tiers) == "<Comparison on cyclic: bam, tier-belady with 8.00 MiB>"
    assert repr(race.runs[0]).startswith("<Run of cyclic, 16.0 MiB in 8.00 MiB, lrm + tree + um: ")
    assert repr(tiers.runs[0]).startswith("<Run of cyclic, 16.0 MiB in 8.00 MiB, bam: ")


def test_a_system_names_the_policies_that_are_not_given():
    simulation = RunSpec("cyclic(bytes=48MiB)", prefetch="none").prepare()
    assert [p.name for p in (simulation.eviction, simulation.prefetch, simulation.placement)] == [
        "lrm",
        "none",
        "um",
    ]


def test_slots_and_pipeline_override_the_machines():
    simulation = RunSpec("cyclic(bytes=48MiB)", slots=7, pipelined=True).prepare()
    assert simulation.machine.near.slots == 7
    assert simulation.machine.driver.pipelined
    assert not RunSpec("cyclic(bytes=48MiB)").prepare().machine.driver.pipelined
    plain = load_machine("rtx3090-pcie4")
    assert dataclasses.replace(simulation.machine, near=plain.near, driver=plain.driver) == plain


def test_bytes_and_geometry_shape_a_named_workload():
    trace = RunSpec("cyclic", bytes="3MiB", geometry="4KiB/64KiB").trace()
    assert (trace.footprint, trace.pages, trace.regions) == (3 * MIB, 768, 48)


def test_a_scale_shrinks_the_workload_and_what_is_observed():
    whole, part = (
        RunSpec("cyclic(bytes=48MiB)", eviction="lru", scale=scale).prepare()
        for scale in (None, "1/4")
    )
    assert part.trace.footprint == whole.trace.footprint // 4
    # None: what the policy declares, which is 100
    assert (whole.observed, part.observed) == (None, 25)
    assert (
        RunSpec("cyclic", eviction="lru", scale=0.5).trace().footprint
        == RunSpec("cyclic").trace().footprint // 2
    )
    assert RunSpec("cyclic", bytes="8MiB", scale="1/2").trace().footprint == 4 * MIB
    assert RunSpec("cyclic(bytes=48MiB)", scale="1/4").prepare().observed is None  # nobody observes
    assert (
        RunSpec("cyclic(bytes=48MiB)", eviction="lru", scale="1/4", observed=7).prepare().observed
        == 7
    )


def test_evicted_regions_are_watched_however_many_are_observed():
    """ObservUVM, V-D: of 100 evicted regions, or as many as the scale leaves, how many came back?"""

    def watch(**asked):
        return RunSpec("cyclic(bytes=1GiB)", eviction="lru", **asked).prepare()._constants.watch

    assert [watch(), watch(observed=10), watch(observed=200)] == [100, 100, 100]
    assert [
        watch(scale="1/4"),
        watch(scale="1/4", observed=7),
        watch(scale="1/4", observed=7, watched=9),
    ] == [25, 25, 9]
    with pytest.raises(TidegateError, match="0 watched regions are none"):
        RunSpec("cyclic", eviction="lru", watched=0).prepare()


def test_samples_and_observed_regions_name_a_run():
    keys = {
        RunSpec("cyclic(bytes=8MiB)", eviction="lru", **how).answer().key
        for how in ({}, {"samples": 2}, {"observed": 3})
    }
    assert len(keys) == 3


def test_a_trace_has_its_size_and_geometry_already():
    for asked in ({"bytes": "1MiB"}, {"scale": "1/2"}, {"geometry": "4KiB/64KiB"}):
        with pytest.raises(
            TidegateError,
            match="trace given has its size and geometry already; leave out bytes, scale and geometry",
        ):
            RunSpec(flat([0, 1]), **asked).prepare()


def test_a_saved_trace_runs_like_the_one_it_was_saved_from(tmp_path):
    blocks = [reads(range(b, b + 9), write=b % 2 == 0, reference=b) for b in range(20)]
    trace = Given([Kernel(blocks[:9]), Kernel(blocks[9:], width=2, intensity=3.0)], [4 * PAGES])
    path = save_trace(trace, tmp_path / "t.parquet")
    asked = {"machine": machine(3), "near": 2 * REGION, "cache": False}
    for policy in ("lrm", "belady", "lru-ideal"):
        here, there = (tidegate.run(w, eviction=policy, **asked) for w in (trace, Path(path)))
        assert (here.counts, here.parts, here.tables) == (there.counts, there.parts, there.tables)


def test_a_policy_that_sees_more_than_the_hardware_shows_is_noted():
    assert run_of(flat([0]), machine(), 1).notes == []
    assert run_of(flat([0]), machine(), 1, eviction="clock").notes == [
        "clock sees everything; the hardware of round shows faults"
    ]


def test_facts_spell_policies_as_people_write_them():
    facts = run_of(
        one_block(reads([0]), [PAGES]),
        machine(5),
        1,
        eviction="random(seed=4)",
        prefetch="tree(threshold=51)",
    ).facts
    assert (facts["eviction"], facts["prefetch"], facts["placement"]) == (
        "random(seed=4)",
        "tree",
        "um",
    )
    assert (facts["near_bytes"], facts["footprint_bytes"], facts["page_bytes"], facts["slots"]) == (
        REGION,
        REGION,
        PAGE,
        5,
    )
    assert facts["provenance"] == "assumed"
    assert spell(prefetch.make("tree(threshold=60)")) == "tree(threshold=60)"


# Traces that cannot be run


@pytest.mark.parametrize("policy", ["lrm", "lru-ideal"])
@pytest.mark.parametrize(
    ("touches", "complaint"),
    [
        (reads([0, 99]), "trace given touches page 99, but its pages run from 0 to 15"),
        (reads([0, -1]), "trace given touches page -1, but its pages run from 0 to 15"),
        (reads([0, 3]), "trace given touches page 3, which belongs to no object"),
        (reads([0, PAGES + 5]), "trace given touches page 13, which belongs to no object"),
        (reads([0], bytes=-1), "trace given has a touch of -1 bytes; expected at least 0"),
        ([], "trace given is empty: it touches nothing"),
    ],
)
def test_a_trace_that_touches_what_is_not_there_is_refused(policy, touches, complaint):
    with pytest.raises(TidegateError) as error:
        run_of(one_block(touches, [3, 5]), machine(2), 2, eviction=policy)
    assert str(error.value) == complaint


def test_a_stray_page_among_many_slots_is_named():
    with pytest.raises(TidegateError, match="touches page 7, which belongs to no object"):
        run_of(Given([Kernel([reads([0, 1, 2]), reads([7]), reads([1])])], [3]), machine(3), 1)


def test_flat_geometry_has_a_page_per_region():
    run = run_of(flat([0, 1, 2]), machine(), 3)
    assert run.facts["geometry"] == str(FLAT) == "4.00 KiB / 4.00 KiB"
