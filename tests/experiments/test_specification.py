"""Run specifications: machine, trace, capacity and policies, or one clear line."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

import tidegate
from tidegate.errors import TidegateError, UnknownName
from tidegate.experiments import GpuModel, RunSpec
from tidegate.machine.machine import load_machine
from tidegate.options import format_spec
from tidegate.policies.registries import prefetch
from tidegate.trace import save_trace
from tidegate.workloads import workloads
from traces import FLAT, PAGE, PAGES, Given, Kernel, flat, machine, one_block, reads, run_of

MIB = 1 << 20
REGION = PAGES * PAGE


@pytest.mark.parametrize(
    ("settings", "frames"),
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
def test_capacity_is_whole_regions(settings, frames):
    assert RunSpec("cyclic(bytes=48MiB)", **settings).prepare().frames == frames


BAD = [
    (
        {"near": "8MiB", "oversubscribe": "50%"},
        "near and oversubscribe were both given; they say the same thing, give one",
    ),
    (
        {"near": "1MiB"},
        "near memory must hold at least one region of 2.00 MiB, got 1.00 MiB; "
        "give it more, or the workload more bytes",
    ),
    ({"scale": 0}, "scale must be positive, such as 1/8, got 0"),
    ({"scale": "big"}, "scale must be a number such as 50%, 1/8 or 0.5, got 'big'"),
    ({"samples": -1}, "samples must be a whole number, at least 0, got -1"),
    ({"observed": 0}, "observed must be a whole number, at least 1, got 0"),
    ({"oversubscribe": "-10%"}, "oversubscribe must be at least 0% (all of it fits), got -10%"),
    (
        {"oversubscribe": "lots"},
        "oversubscribe must be a number such as 50%, 1/8 or 0.5, got 'lots'",
    ),
    ({"slots": 0}, "slots must be a whole number, at least 1, got 0"),
    (
        {"bytes": "1GiB"},
        "bytes was given twice, in 'cyclic(bytes=48MiB)' and as bytes=1GiB; give it once",
    ),
    ({"geometry": "64KiB"}, "geometry must be PAGE/REGION, such as 64KiB/2MiB, got '64KiB'"),
    ({"geometry": "64KiB/4KiB"}, "region must be at least a page of 65536 bytes, got 4096 bytes"),
    ({"geometry": "60KiB/2MiB"}, "page must be a power of two, got 61440 bytes; try page=64KiB"),
]


@pytest.mark.parametrize(("settings", "message"), BAD)
def test_what_cannot_be_run_is_refused_in_one_line(settings, message):
    with pytest.raises(TidegateError) as error:
        RunSpec.from_settings("cyclic(bytes=48MiB)", settings).prepare()
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"eviction": "lrux"}, "unknown eviction 'lrux'; did you mean"),
        ({"prefetch": "trees"}, "unknown prefetch 'trees'; did you mean 'tree'"),
        ({"placement": "hosts"}, "unknown placement 'hosts'; did you mean 'host'"),
        ({"system": "uwm"}, "unknown system 'uwm'; did you mean 'uvm'"),
        ({"machine": "rtx3090"}, "unknown machine 'rtx3090'; did you mean 'rtx3090-pcie4'"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(settings, message):
    with pytest.raises(UnknownName, match=message):
        RunSpec.from_settings("cyclic(bytes=48MiB)", settings).prepare()
    with pytest.raises(UnknownName, match="unknown workload 'cyclics'; did you mean 'cyclic'"):
        RunSpec("cyclics").prepare()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"eviction": 5}, "eviction must be a name or a tidegate.policy.EvictionPolicy, got 5"),
        (
            {"eviction": prefetch.find("tree")},
            "eviction must be a name or a tidegate.policy.EvictionPolicy, got <",
        ),
        (
            {"eviction": prefetch.make("tree")},
            "eviction must be a name or a tidegate.policy.EvictionPolicy, got <",
        ),
        (
            {"prefetch": ["tree"]},
            "prefetch must be a name or a tidegate.policy.PrefetchPolicy, got ['tree']",
        ),
        ({"near": ["8MiB"]}, "got ['8MiB']"),
        ({"slots": "x"}, "slots must be a whole number, at least 1, got 'x'"),
        ({"samples": 1.5}, "samples must be a whole number, at least 0, got 1.5"),
        ({"workload": None}, "workload must be a name or a tidegate.workload.Workload, got None"),
    ],
)
def test_what_is_of_another_kind_is_refused_in_one_line(settings, message):
    with pytest.raises(TidegateError, match=re.escape(message)):
        RunSpec("cyclic(bytes=48MiB)").change(**settings).run()


def test_a_name_is_no_trace():
    with pytest.raises(
        TidegateError,
        match=re.escape(
            "trace must be a Trace, such as tidegate.RunSpec('matmul').trace(), got 'matmul'"
        ),
    ):
        save_trace("matmul", "x.parquet")


def test_a_trace_is_saved_under_a_name_that_can_be_run(tmp_path):
    with pytest.raises(TidegateError, match=r"its name must end in \.parquet"):
        save_trace(RunSpec("cyclic(bytes=16MiB)").trace(), tmp_path / "x.txt")
    assert not any(tmp_path.iterdir())


def test_a_grid_is_made_of_specifications():
    with pytest.raises(TidegateError, match=r"run_grid needs RunSpecs, .*, got 'cyclic'"):
        tidegate.experiments.run_grid(["cyclic"])


def test_a_class_of_workloads_will_do():
    cyclic = workloads.find("cyclic")
    assert RunSpec(cyclic, bytes="16MiB", scale="1/2").trace().footprint == 8 * MIB
    assert RunSpec(cyclic).trace().identity() == RunSpec("cyclic").trace().identity()


def test_one_policy_or_size_may_stand_alone():
    race = tidegate.compare("cyclic(bytes=16MiB)", "lrm", near="8MiB", bound=False)
    assert (race.policies, race.sizes) == (["lrm"], [8 * MIB])
    with pytest.raises(TidegateError, match="eviction must name at least one"):
        tidegate.compare("cyclic(bytes=16MiB)", [])


def test_what_was_found_begins_with_one_short_line_at_a_prompt():
    name = "cyclic(bytes=16MiB)"
    race = tidegate.compare(name, ["lrm"], near=["8MiB"])
    tiers = tidegate.compare(name, tiering=["bam"], near=["8MiB"])
    assert repr(race).startswith(f"<Comparison on {name}: lrm, belady with 8.00 MiB>\n")
    assert repr(tiers).startswith(f"<Comparison on {name}: bam, tier-belady with 8.00 MiB>\n")
    runs = repr(race.runs[0]), repr(tiers.runs[0])
    assert runs[0].startswith(f"<Run of {name}, 16.0 MiB in 8.00 MiB, lrm + tree + um: ")
    assert runs[1].startswith(f"<Run of {name}, 16.0 MiB in 8.00 MiB, bam: ")


def test_a_system_names_the_policies_that_are_not_given():
    simulation = RunSpec("cyclic(bytes=48MiB)", prefetch="none").prepare()
    assert [p.name for p in (simulation.eviction, simulation.prefetch, simulation.placement)] == [
        "lrm",
        "none",
        "um",
    ]


def test_slots_and_pipeline_override_the_machines():
    simulation = RunSpec("cyclic(bytes=48MiB)", slots=7, gpu=GpuModel(pipelined=True)).prepare()
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
    assert (
        RunSpec("cyclic(bytes=48MiB)", scale="1/4").prepare().observed is None
    )  # no policy observes
    assert (
        RunSpec("cyclic(bytes=48MiB)", eviction="lru", scale="1/4", gpu=GpuModel(observed=7))
        .prepare()
        .observed
        == 7
    )


def test_evicted_regions_are_watched_however_many_are_observed():
    """ObservUVM, V-D: 100 evicted regions are watched, or as many as the scale leaves."""

    def watch(**settings):
        spec = RunSpec("cyclic(bytes=1GiB)", eviction="lru").change(**settings)
        return spec.prepare()._constants.watch

    assert [watch(), watch(observed=10), watch(observed=200)] == [100, 100, 100]
    assert [
        watch(scale="1/4"),
        watch(scale="1/4", observed=7),
        watch(scale="1/4", observed=7, watched=9),
    ] == [25, 25, 9]
    with pytest.raises(TidegateError, match="watched must be a whole number, at least 1, got 0"):
        GpuModel(watched=0)


def test_samples_and_observed_regions_name_a_run():
    keys = {
        RunSpec("cyclic(bytes=8MiB)", eviction="lru").change(**how).run().key
        for how in ({}, {"samples": 2}, {"observed": 3})
    }
    assert len(keys) == 3


def test_a_trace_has_its_size_and_geometry_already():
    for settings in ({"bytes": "1MiB"}, {"scale": "1/2"}, {"geometry": "4KiB/64KiB"}):
        with pytest.raises(
            TidegateError,
            match="trace given has its size and geometry already; leave out bytes, scale and geo",
        ):
            RunSpec(flat([0, 1]), **settings).prepare()


def test_a_saved_trace_runs_like_the_one_it_was_saved_from(tmp_path):
    blocks = [reads(range(b, b + 9), write=b % 2 == 0, reference=b) for b in range(20)]
    trace = Given([Kernel(blocks[:9]), Kernel(blocks[9:], width=2, intensity=3.0)], [4 * PAGES])
    path = save_trace(trace, tmp_path / "t.parquet")
    settings = {"machine": machine(3), "near": 2 * REGION, "cache": False}
    for policy in ("lrm", "belady", "lru-ideal"):
        here, there = (tidegate.run(w, eviction=policy, **settings) for w in (trace, Path(path)))
        assert (here.counts, here.parts, here.tables) == (there.counts, there.parts, there.tables)


def test_a_policy_that_sees_more_than_the_hardware_shows_is_noted():
    assert run_of(flat([0]), machine(), 1).notes == []
    assert run_of(flat([0]), machine(), 1, eviction="clock").notes == [
        "clock sees everything; the hardware of round shows faults"
    ]


@pytest.mark.parametrize(("passes", "deep"), [(2, False), (3, True)])
def test_deep_thrash_is_noted(passes, deep):
    """One block that walks over 2 pages in a frame of one brings both in each pass."""
    notes = run_of(flat([0, 1] * passes), machine(), 1).notes
    assert any(note.startswith("deep thrash") for note in notes) is deep


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
    assert format_spec(prefetch.make("tree(threshold=60)")) == "tree(threshold=60)"


# Traces that cannot be run


@pytest.mark.parametrize("policy", ["lrm", "lru-ideal"])
@pytest.mark.parametrize(
    ("touches", "message"),
    [
        (reads([0, 99]), "trace given touches page 99, but its pages run from 0 to 15"),
        (reads([0, -1]), "trace given touches page -1, but its pages run from 0 to 15"),
        (reads([0, 3]), "trace given touches page 3, which belongs to no object"),
        (reads([0, PAGES + 5]), "trace given touches page 13, which belongs to no object"),
        (reads([0], bytes=-1), "bytes of a touch in trace given must be at least 0, got -1"),
        ([], "trace given is empty: it touches nothing"),
    ],
)
def test_a_trace_that_touches_what_is_not_there_is_refused(policy, touches, message):
    with pytest.raises(TidegateError) as error:
        run_of(one_block(touches, [3, 5]), machine(2), 2, eviction=policy)
    assert str(error.value) == message


def test_a_stray_page_among_many_slots_is_named():
    with pytest.raises(TidegateError, match="touches page 7, which belongs to no object"):
        run_of(Given([Kernel([reads([0, 1, 2]), reads([7]), reads([1])])], [3]), machine(3), 1)


def test_flat_geometry_has_a_page_per_region():
    run = run_of(flat([0, 1, 2]), machine(), 3)
    assert run.facts["geometry"] == str(FLAT) == "4.00 KiB / 4.00 KiB"


def test_fits_is_the_share_of_the_footprint_in_near_memory() -> None:
    whole = RunSpec("cyclic(bytes=64MiB)", fits="75%").prepare().frames
    assert whole == 24
    assert RunSpec("cyclic(bytes=64MiB)", near="48MiB").prepare().frames == whole
    with pytest.raises(TidegateError, match="near and fits were both given"):
        RunSpec("cyclic", near="1GiB", fits="50%")
    with pytest.raises(TidegateError, match=r"fits must be above 0% and at most 100%, .* got 120%"):
        RunSpec("cyclic", fits="120%").prepare()


def test_an_application_runs_on_its_papers_machine() -> None:
    assert RunSpec("cppe-NW").load_machine().name == "gpgpusim-28sm"
    assert RunSpec("MM(bytes=1GiB)").load_machine().name == "rtx3090-pcie4"
    assert RunSpec("cyclic").load_machine().name == "rtx3090-pcie4"
    assert RunSpec("cppe-NW", "gh200").load_machine().name == "gh200"


def test_a_default_that_is_given_makes_no_other_run() -> None:
    plain = RunSpec("cyclic(bytes=8MiB)", near="4MiB", eviction="tournament")
    given = RunSpec(
        "cyclic(bytes=8MiB, passes=4)", near="4MiB", eviction="tournament(patience=100)"
    )
    assert given.key == plain.key


def test_a_scale_scales_all_that_counts_regions_unless_it_is_given() -> None:
    """Patience, feedback and windows with observed and watched regions, not one without another."""

    def at(**given: object) -> tuple[int, int, int]:
        s = RunSpec("MM", scale="1/8", **given).prepare()
        fdp = s.prefetch.parts[0]
        return s.eviction.patience, fdp.enough, s._constants.observe_most

    assert at(system="tm++") == (12, 2, 12)
    assert at(eviction="tournament(patience=40)", prefetch="fdp+rgp") == (40, 2, 12)
    assert at(eviction="tournament(patience=100)", prefetch="fdp+rgp") == (100, 2, 12)
    whole = RunSpec("MM", system="tm++").prepare()
    assert (whole.eviction.patience, whole.prefetch.parts[0].enough) == (100, 16)


def test_what_policies_decided_is_in_the_runs_facts() -> None:
    loop = "cyclic(bytes=64MiB, passes=6)"
    made = tidegate.run(
        loop, near="32MiB", eviction="tournament(patience=5)", prefetch="fdp+rgp", slots=1
    )
    decisions = {d["policy"]: d["what"] for d in made.facts["decisions"]}
    assert decisions["tournament"].startswith("kept")
    assert decisions["fdp+rgp"].startswith("streams")
    assert made.summary["decisions"] == made.counts["decisions"]  # how often one was made
    small = "cyclic(bytes=1MiB, passes=3)"
    made = tidegate.run(small, machine="gpgpusim-28sm", fits="50%", system="sl+hpe")
    kind, ended = (d["what"] for d in made.facts["decisions"])
    assert (kind, ended.partition(",")[0]) == ("regular", "mru-c")
