"""tidegate compare: failures, sweeps, several workloads; and prints of users' classes."""

from __future__ import annotations

import json
import re

import pytest

BAD = """
from tidegate.policy import EvictionPolicy

class Bad(EvictionPolicy):
    def victim(self):
        raise ValueError("no")
"""
LOUD = """
print("loading")
from tidegate.workload import Launch, Option, Workload, blocks_of
from tidegate.policies.eviction.fifo import FIFO
from tidegate.units import size

class Loud(FIFO):
    name = ""
    def on_fault(self, region):
        print("fault of", region)
        super().on_fault(region)

class Noisy(Workload):
    bytes = Option(size("16MiB"), "size of the array", parse=size, least=1)

    def sizes(self):
        print("sizes")
        return {"array": self.bytes}

    def launches(self, space):
        print("launches")
        a = space["array"]
        pages = range(a.first_page, a.first_page + a.pages)
        yield Launch("pass", [blocks_of(8, pages, bytes=space.geometry.page)])
"""


@pytest.fixture
def bad(tmp_path) -> str:
    (tmp_path / "bad.py").write_text(BAD)
    return "bad.py:Bad"


@pytest.fixture
def loud(tmp_path) -> str:
    (tmp_path / "loud.py").write_text(LOUD)
    return "loud.py"


# One that fails


def test_a_failure_is_a_row_and_exit_code_1(tidegate, small, bad):
    answer = tidegate("compare", small, "-e", f"lrm,{bad},mru", "--near", "8MiB")
    assert answer.code == 1
    assert answer.err == "tidegate: 1 of 4 runs failed\n"
    assert "\n  lrm " in answer.out
    assert "\n  mru " in answer.out
    assert re.search(r"\n  Bad +failed +– ", answer.out)
    assert "Bad failed: policy 'Bad' raised in victim(): ValueError: no (bad.py, line 6)" in (
        " ".join(answer.out.split())
    )


@pytest.mark.parametrize("how", ["--json", "--csv"])
def test_programs_are_told_of_the_failure(tidegate, small, bad, how):
    answer = tidegate("compare", small, "-e", f"{bad},lrm", "--near", "8MiB", how)
    rows = answer.json if how == "--json" else answer.csv
    assert answer.code == 1
    assert [r["policy"] for r in rows] == ["Bad", "lrm", "belady"]
    assert "ValueError: no (bad.py, line 6)" in rows[0]["failed"]
    assert not rows[0]["time_ns"]
    assert not rows[1]["failed"]
    assert float(rows[1]["time_ns"]) > 0


def test_the_plot_is_drawn_without_it(tidegate, small, bad, tmp_path):
    words = ("compare", small, "-e", f"{bad},lrm", "--near", "4MiB,8MiB", "--plot", "race.png")
    assert tidegate(*words).code == 1
    assert (tmp_path / "race.png").stat().st_size > 10_000


def test_if_all_fail_it_is_one_line(refused, small, bad):
    line = refused("compare", small, "-e", bad, "--no-belady", "--near", "8MiB")
    assert "policy 'Bad' raised in victim()" in line


# What users' classes print


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("how", ["--json", "--csv"])
def test_prints_do_not_go_into_what_programs_read(process, small, loud, how, workers):
    words = ("compare", f"{loud}:Noisy", "-e", f"lrm,{loud}:Loud", "--near", "8MiB", how)
    answer = process(*words, "--workers", workers, "--no-cache")
    assert answer.code == 0, answer.err
    rows = answer.json if how == "--json" else answer.csv
    assert [r["policy"] for r in rows] == ["lrm", "Loud", "belady"]
    for said in ("loading", "sizes", "launches", "fault of 0"):
        assert said in answer.err
        assert said not in answer.out


@pytest.mark.parametrize(
    "words",
    [
        ("run", "loud.py:Noisy", "--eviction", "loud.py:Loud", "--no-cache"),
        ("analyze", "loud.py:Noisy"),
        ("trace", "info", "loud.py:Noisy"),
        ("list", "eviction", "loud.py:Loud"),
    ],
)
def test_no_verb_mixes_them(tidegate, loud, words):
    answer = tidegate(*words, "--json")
    assert answer.code == 0, answer.err
    json.loads(answer.out)
    assert "loading" in answer.err or "sizes" in answer.err or words[0] == "list"


# Options, workloads and sweeps


def test_options_of_a_workload_are_repeated_everywhere(works, small):
    run = works("run", small, "--json").json
    assert run["summary"]["workload"] == small
    assert works("run", "cyclic(passes=2)", "--bytes", "16MiB", "--csv").csv[0]["workload"] == small
    assert small in works("run", small).out
    assert small in works("compare", small, "-e", "lrm").out
    assert works("analyze", small, "--json").json["name"] == small
    assert works("run", "cyclic", "--scale", "1/64", "--json").json["summary"]["workload"] == (
        "cyclic(bytes=16MiB)"
    )


def test_csv_says_which_workload_and_machine(works, small):
    rows = works("compare", small, "-e", "lrm", "--machine", "gh200", "--csv").csv
    assert {(r["workload"], r["machine"]) for r in rows} == {(small, "gh200")}


@pytest.mark.parametrize(
    "words",
    [("cyclic(bytes=16MiB)", "stream(bytes=16MiB)"), ("cyclic(bytes=16MiB),stream(bytes=16MiB)",)],
)
def test_several_workloads(works, words):
    rows = works("compare", *words, "-e", "lrm,mru", "--no-belady", "--csv").csv
    assert [(r["workload"], r["policy"]) for r in rows] == [
        (f"{name}(bytes=16MiB)", policy)
        for name in ("cyclic", "stream")
        for policy in ("lrm", "mru")
    ]
    out = works("compare", *words, "-e", "lrm").out
    assert "cyclic(bytes=16MiB), assumed" in out
    assert "stream(bytes=16MiB), derived" in out


@pytest.mark.slow
def test_sweeps(works):
    rows = works(
        "compare",
        "cyclic(bytes=16MiB, passes=1|2)",
        "-e",
        "lrm,random(seed=4|5)",
        "--machine",
        "rtx3090-pcie4(link.inward=11GB/s|22GB/s)",
        "--no-belady",
        "--json",
    ).json
    assert len(rows) == 2 * 2 * 3
    assert {r["policy"] for r in rows} == {"lrm", "random(seed=4)", "random(seed=5)"}
    assert {r["workload"] for r in rows} == {f"cyclic(bytes=16MiB, passes={n})" for n in (1, 2)}
    assert len({r["machine"] for r in rows}) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "cyclic(passes=1|2)"), "several values; that is for compare, give one here"),
        (("compare", "cyclic", "-e", "random(seed=1|)"), "cannot read 'seed=1|'"),
        (("compare", "cyclic(bytes=16MiB)", "-e", "random(seed=1|1)"), "two runs are the same"),
        (
            ("compare", "cyclic(bytes=16MiB)", "--machine", ","),
            "--machine must name one or several",
        ),
    ],
)
def test_wrong_sweeps(refused, words, said):
    assert said in refused(*words)


def test_a_file_with_a_comma_in_its_name_is_one_workload(works, small):
    works("trace", "save", small, "a,b.parquet")
    assert works("compare", "a,b.parquet", "-e", "lrm", "--csv").csv[0]["workload"] == small


def test_what_fits_is_said_to_fit(works, small):
    out = works("compare", small, "-e", "lrm", "--near", "32MiB,8MiB").out
    assert "near memory 32.0 MiB, it fits" in out
    assert "near memory 8.00 MiB, 100% oversubscribed" in out
    assert "-50%" not in out
