"""Comparisons: labels by what differs, failures beside the others, several workloads, sweeps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidegate
from tidegate.errors import PolicyError, TidegateError, UnknownName
from tidegate.experiments import Comparison
from tidegate.machine import load_machine
from tidegate.options import expand, parse_spec
from tidegate.policies.eviction.fifo import FIFO

SMALL = "cyclic(bytes=16MiB, passes=2)"
FAILS = """
from tidegate.policy import EvictionPolicy

class {name}(EvictionPolicy):
    def victim(self):
        raise ValueError("no {name} <b>")
"""


def write(folder, name, text) -> str:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return str(folder / name)


# Labels


def own_fifo(name: str = "LRU", extra: str = "") -> str:
    return (
        "from tidegate.policies.eviction.fifo import FIFO\n"
        f"class {name}(FIFO):\n    name = ''\n    {extra or 'pass'}\n"
    )


def test_classes_of_one_name_are_told_apart_by_their_files(tmp_path):
    a, b = (write(tmp_path / folder, "lru.py", own_fifo()) for folder in "ab")
    race = tidegate.compare(SMALL, [f"{a}:LRU", f"{b}:LRU", "fifo"], bound=False)
    assert race.policies == ["a/lru.py:LRU", "b/lru.py:LRU", "fifo"]
    assert len({run.time for run in race.runs}) == 1


def test_a_file_that_is_the_only_one_of_its_name_needs_no_path(tmp_path):
    a, b = write(tmp_path, "a.py", own_fifo("Mine")), write(tmp_path, "b.py", own_fifo("Other"))
    assert tidegate.compare(SMALL, [a, b], bound=False).policies == ["Mine", "Other"]


def test_a_copy_of_a_policy_of_ours_is_told_from_it(tmp_path):
    mine = write(tmp_path, "mine.py", own_fifo("fifo"))
    assert tidegate.compare(SMALL, ["fifo", mine], bound=False).policies == ["fifo", "mine.py:fifo"]


def test_objects_are_numbered_where_nothing_else_differs():
    race = tidegate.compare(SMALL, [FIFO(), FIFO()], bound=False)
    assert race.policies == ["fifo #1", "fifo #2"]


def test_what_is_the_same_is_still_refused(tmp_path):
    a = write(tmp_path / "a", "lru.py", own_fifo())
    for twice in ([a, a], ["lrm", "LRM"], ["random(seed=0)", "random"], [FIFO, "fifo"]):
        with pytest.raises(TidegateError, match="two runs are the same"):
            tidegate.compare(SMALL, twice, bound=False)
    with pytest.raises(TidegateError, match="two runs are the same"):
        tidegate.compare([SMALL, SMALL], "lrm")


def test_trace_files_of_one_name_are_told_apart(tmp_path):
    for folder, workload in (("a", SMALL), ("b", SMALL)):
        (tmp_path / folder).mkdir()
        tidegate.save_trace(tidegate.RunSpec(workload).trace(), tmp_path / folder / "t.parquet")
    files = [str(tmp_path / folder / "t.parquet") for folder in "ab"]
    race = tidegate.compare(files, "lrm", bound=False)
    assert race.workloads == [f"a/t.parquet:{SMALL}", f"b/t.parquet:{SMALL}"]


# Failures


@pytest.mark.slow
@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("workers", [1, 2])
def test_one_that_fails_does_not_hide_the_others(tmp_path, at, workers):
    bad = write(tmp_path, "bad.py", FAILS.format(name="Bad"))
    policies = ["lrm", "mru"]
    policies.insert(at, bad)
    race = tidegate.compare(SMALL, policies, near=["8MiB", "16MiB"], workers=workers, cache=False)
    assert len(race.entries) == 8
    assert [(e.policy, e.near) for e in race.failures] == [("Bad", 8 << 20)]  # 16 MiB evict nothing
    assert "raised in victim(): ValueError: no Bad" in race.failures[0].failed
    alone = tidegate.compare(SMALL, ["lrm", "mru"], near=["8MiB", "16MiB"], cache=False)
    for policy in ("lrm", "mru", "belady"):
        assert race.run(policy, 8 << 20) == alone.run(policy, 8 << 20)
    with pytest.raises(TidegateError, match="Bad failed: policy 'Bad' raised"):
        race.run("Bad", 8 << 20)
    rows = {(r["policy"], r["near_bytes"]): r for r in race.table.to_dicts()}
    failed = rows["Bad", 8 << 20]
    assert failed["time_ns"] is None
    assert failed["failed"] == race.failures[0].failed
    assert all(r["failed"] is None for r in rows.values() if r is not failed)
    assert (rows["mru", 8 << 20]["speedup"] is None) == (at == 0)
    race.plot()
    assert "Bad failed: policy 'Bad' raised" in repr(race)
    assert "<b>" not in race._repr_html_().split("Bad failed")[1].split("</p>")[0]


def test_if_all_fail_the_first_error_is_raised(tmp_path):
    one, two = (write(tmp_path, f"{n}.py", FAILS.format(name=n)) for n in ("One", "Two"))
    with pytest.raises(PolicyError, match="'One'"):
        tidegate.compare(SMALL, [one, two], near="8MiB", bound=False)


def test_a_mistake_that_is_known_before_is_refused():
    with pytest.raises(UnknownName, match="lrmm"):
        tidegate.compare(SMALL, ["lrm", "lrmm"])


# Several workloads and machines, and sweeps


@pytest.mark.slow
def test_several_workloads_and_machines():
    machines = ["rtx3090-pcie4", "rtx3090-pcie4(link.inward=11GB/s)"]
    race = tidegate.compare(
        [SMALL, "stream(bytes=16MiB)"], ["lrm", "mru"], machine=machines, bound=False
    )
    table = race.table
    assert race.workloads == [SMALL, "stream(bytes=16MiB)"]
    assert table.select("workload", "machine").unique().height == len(race.parts) == 4
    assert table.height == 8
    for part in race.parts:
        first = part.table.row(0, named=True)
        alone = tidegate.run(first["workload"], machine=first["machine"], eviction=first["policy"])
        assert alone.time == first["time_ns"]
        assert set(part.table["speedup"][:1]) == {1.0}
    slow, fast = race.parts[1], race.parts[0]
    assert slow.table["transfer_in_ns"][0] > fast.table["transfer_in_ns"][0]
    with pytest.raises(TidegateError, match="take one of its parts"):
        race.run("lrm", race.sizes[0])
    assert len(race.plot().axes) == 8


def test_a_sweep_is_a_run_per_value_with_the_value_in_its_label():
    race = tidegate.compare("cyclic(bytes=8MiB|16MiB, passes=2)", "random(seed=0|1)", bound=False)
    assert race.policies == ["random(seed=0)", "random(seed=1)"]  # 0 is the default
    assert race.workloads == ["cyclic(bytes=8MiB, passes=2)", SMALL]
    for entry in race.entries:
        assert entry.run == tidegate.run(entry.workload, eviction=entry.policy)


def test_sweeps_of_prefetch_placement_and_tiering():
    race = tidegate.compare(
        SMALL, "lrm", "tree(threshold=51|75)", placement=["um", "host"], bound=False
    )
    assert race.policies == [
        f"lrm + tree(threshold={n}) + {placement}" for n in (51, 75) for placement in ("um", "host")
    ]
    option = "tier-random(seed=1|2)"
    tiers = tidegate.compare("cyclic(bytes=8MiB)", tiering=option, near="1MiB", bound=False)
    assert tiers.policies == ["tier-random(seed=1)", "tier-random(seed=2)"]


@given(st.lists(st.lists(st.integers(0, 99), min_size=1, max_size=3), min_size=1, max_size=3))
def test_expansion_is_the_product(values):
    text = ", ".join(f"o{n}={'|'.join(map(str, v))}" for n, v in enumerate(values))
    found = [tuple(parse_spec(one)[1].values()) for one in expand(f"name({text})")]
    product = [()]
    for v in values:
        product = [(*p, x) for p in product for x in v]
    assert found == product


def test_expansion_of_nested_and_of_plain_texts():
    assert expand("a(b=c(d=1|2), e=3)") == ["a(b=c(d=1), e=3)", "a(b=c(d=2), e=3)"]
    for plain in ("lrm", "mine.py:LRU", "random(seed=1)", "a|b", "a(b"):
        assert expand(plain) == [plain]
    with pytest.raises(TidegateError, match=r"cannot read 'lag=4\|'"):
        expand("x(lag=4|)")


@pytest.mark.parametrize("field", ["eviction", "prefetch", "placement"])
def test_one_run_takes_one_value(field):
    with pytest.raises(TidegateError, match="several values; that is for compare"):
        tidegate.run(SMALL, **{field: "random(seed=1|2)"})


# Constants of machines


def test_a_constant_of_a_machine_can_be_replaced(tmp_path):
    plain = load_machine("rtx3090-pcie4")
    changed = load_machine("rtx3090-pcie4(link.inward=11GB/s, driver.pipelined=true)")
    assert (changed.link.inward, changed.driver.pipelined) == (11.0, True)
    assert changed.link.outward == plain.link.outward
    assert changed.name == "rtx3090-pcie4(link.inward=11GB/s, driver.pipelined=true)"


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        ("rtx3090-pcie4(link.inwards=1GB/s)", "did you mean 'inward'"),
        ("rtx3090-pcie4(inward=1GB/s)", "constants are named TABLE.NAME, such as link.inward"),
        ("rtx3090-pcie4(link.inward=fast)", "link.inward: rate must be"),
        ("rtx3090(link.inward=1GB/s)", "unknown machine 'rtx3090'"),
        ("rtx3090-pcie4(link.inward=1GB/s|2GB/s)", "several values; that is for compare"),
    ],
)
def test_wrong_constants_are_refused(machine, said):
    with pytest.raises(TidegateError, match=r".*") as error:
        load_machine(machine)
    assert said in str(error.value)


# At a prompt and in a notebook


def test_a_long_comparison_is_cut_at_a_prompt():
    seeds = "|".join(map(str, range(50)))
    race = tidegate.compare(SMALL, f"random(seed={seeds})", bound=False, workers=1)
    lines = repr(race).splitlines()
    assert len(lines) < 50
    assert ".table has every row" in lines[-1]
    assert all(len(line) <= 100 for line in lines[1:])


def test_a_notebook_shows_tables_and_one_picture():
    race: Comparison = tidegate.compare(SMALL, ["lrm", "mru"], near=["8MiB", "16MiB"])
    found = race._repr_html_()
    assert found.count("<table>") == 2
    assert found.count("<img ") == 1
    assert "it fits" in found
    assert "-0%" not in found


@pytest.mark.slow
def test_analyze_takes_names_and_shows_itself():
    found = tidegate.analyze("cyclic(passes=2)", bytes="16MiB", shards="50%")
    assert (found.distinct, found.name) == (8, SMALL)
    assert repr(found).startswith(f"<Analysis of {SMALL}: 512 touches of 8 regions, 16.0 MiB>\n")
    assert found._repr_html_().count("<table>") == 2
    assert found._repr_html_().count("<img ") == 1
    with pytest.raises(TypeError, match="near"):
        tidegate.analyze(SMALL, near="8MiB")
    with pytest.raises(UnknownName, match="unknown workload 'cyclik'"):
        tidegate.analyze("cyclik")
