"""What each verb prints and writes."""

from __future__ import annotations

import re

import pytest

from tidegate.experiments.comparison_spec import POLICIES
from tidegate.policies.registries import eviction

FORMATS = ["png", "svg", "html"]
SHIPPED = ["belady", "clock", "fifo", "lrm", "lru-ideal", "mru", "random"]


def begins_like_its_format(path) -> bool:
    beginnings = {"png": b"\x89PNG\r\n\x1a\n", "svg": b"<?xml", "html": b"<!doctype html>"}
    return path.read_bytes().startswith(beginnings[path.suffix[1:]])


# run


def test_run_says_what_ran_and_where_the_time_went(works, small):
    out = works("run", small, "--near", "8MiB", "--eviction", "mru", "--prefetch", "none").out
    assert f"{small}, assumed · mru + none + um · rtx3090-pcie4" in out
    assert "16.0 MiB in 8.00 MiB of near memory: 100% oversubscribed" in out
    for word in (
        "compute",
        "fault handling",
        "transfer in",
        "transfer out",
        "touches",
        "page faults",
        "evictions",
    ):
        assert word in out


def test_run_says_that_it_fits(works, small):
    assert "it fits" in works("run", small, "--near", "16MiB").out


def test_run_mentions_what_the_hardware_does_not_show(works, small):
    assert "note: lru-ideal sees everything" in works("run", small, "--eviction", "lru-ideal").out
    assert "note" not in works("run", small, "--eviction", "fifo").out


def test_checked_runs_give_the_same_figures(works, refused, small, tmp_path):
    plain, checked = (works("run", small, *more, "--json").json for more in ((), ("--checked",)))
    assert checked["summary"] == plain["summary"]
    (tmp_path / "large.py").write_text(
        "from tidegate.policy import EvictionPolicy, Faults\n"
        "class Large(EvictionPolicy):\n"
        "    sees = Faults()\n"
        "    def start(self): self.n = 1\n"
        "    def on_fault(self, region): self.n = self.n * 1000000\n"
        "    def victim(self): return next(iter(self.resident))\n"
    )
    line = refused("run", small, "--eviction", "large.py:Large", "--checked")
    assert "large.py, line 5" in line


def test_run_json(works, small):
    data = works("run", small, "--near", "8MiB", "--eviction", "random(seed=3)", "--json").json
    tables = {"summary", "launches", "objects", "decisions", "notes"}
    assert data.keys() == {*tables, "key", "from_store"}
    summary = data["summary"]
    assert summary["workload"] == small
    assert summary["eviction"] == "random(seed=3)"
    assert summary["near_bytes"] == 8 << 20
    assert summary["footprint_bytes"] == 16 << 20
    assert summary["touches"] == 2 * 256
    parts = [
        v for k, v in summary.items() if k.endswith("_ns") and "busy" not in k and k != "time_ns"
    ]
    assert sum(parts) == pytest.approx(summary["time_ns"])
    assert data["launches"]["name"] == ["pass", "pass"]
    assert data["objects"]["bytes"] == [16 << 20]


def test_run_csv_is_the_summary(works, small):
    (row,) = works("run", small, "--csv").csv
    summary = works("run", small, "--json").json["summary"]
    assert row.keys() == {*summary, "from_store"}
    assert int(row["faults"]) == summary["faults"]
    assert float(row["time_ns"]) == pytest.approx(summary["time_ns"])


def test_run_is_the_same_computed_anew(works, small):
    anew = works("run", small, "--json", "--no-cache").json
    assert works("run", small, "--json").json | {"from_store": False} == anew


def test_every_option_of_run_is_taken(works, small):
    summary = works(
        "run",
        "cyclic(passes=2)",
        "--bytes",
        "1MiB",
        "--oversubscribe",
        "1/3",
        "--machine",
        "gpgpusim-28sm",
        "--system",
        "uvm",
        "--eviction",
        "clock",
        "--prefetch",
        "tree(threshold=75)",
        "--placement",
        "um",
        "--geometry",
        "16KiB/128KiB",
        "--slots",
        "3",
        "--dirty-only",
        "--pipelined",
        "--no-cache",
        "--json",
    ).json["summary"]
    assert summary["geometry"] == "16.0 KiB / 128 KiB"
    assert summary["near_bytes"] == 6 * (128 << 10)  # three quarters of 1 MiB, in whole regions
    assert summary["slots"] == 3
    assert summary["prefetch"] == "tree(threshold=75)"
    # nothing was written, and only what was written is written back
    assert summary["bytes_out"] == 0


@pytest.mark.parametrize("suffix", FORMATS)
def test_run_plots(works, small, tmp_path, suffix):
    assert f"plotted to run.{suffix}" in works("run", small, "--plot", f"run.{suffix}").out
    assert begins_like_its_format(tmp_path / f"run.{suffix}")


def test_a_plot_replaces_the_old_one_and_leaves_nothing_else(works, small, tmp_path):
    (tmp_path / "run.svg").write_text("old")
    works("run", small, "--plot", "run.svg")
    assert begins_like_its_format(tmp_path / "run.svg")
    assert [p.name for p in tmp_path.iterdir()] == ["run.svg"]


@pytest.mark.parametrize("how", ["--json", "--csv"])
def test_a_plot_does_not_disturb_what_programs_read(works, small, how):
    plain = works("run", small, how).out
    assert works("run", small, how, "--plot", "run.png").out == plain


# compare


def test_compare_races_all_six_and_belady(works, small):
    out = works("compare", small).out
    for policy in (*POLICIES, "belady"):
        assert f"\n  {policy} " in out
    assert "near memory 10.0 MiB" in out
    assert "1.00×" in out
    assert len(POLICIES) == 6


@pytest.mark.parametrize("name", ["belady", "Belady", "belady()"])
def test_belady_is_there_once_however_it_is_given(works, small, name):
    assert [r["policy"] for r in works("compare", small, "-e", f"lrm,{name}", "--json").json] == [
        "lrm",
        "belady",
    ]


def test_compare_json_has_a_row_per_run(works, small):
    rows = works(
        "compare",
        small,
        "-e",
        "lrm,mru,random(seed=1)",
        "--near",
        "4MiB,8MiB",
        "--workers",
        "1",
        "--json",
    ).json
    assert [(r["near_bytes"] >> 20, r["policy"]) for r in rows] == [
        (size, policy) for size in (8, 4) for policy in ("lrm", "mru", "random(seed=1)", "belady")
    ]
    for row in rows:
        assert row.keys() >= {
            "oversubscription",
            "time_ns",
            "speedup",
            "faults",
            "evictions",
            "bytes_in",
            "bytes_out",
            "run",
        }
        assert row["oversubscription"] == (16 << 20) / row["near_bytes"] - 1
    first = {r["near_bytes"]: r["time_ns"] for r in rows if r["policy"] == "lrm"}
    assert all(r["speedup"] == pytest.approx(first[r["near_bytes"]] / r["time_ns"]) for r in rows)


def test_compare_csv(works, small):
    rows = works(
        "compare", small, "-e", "lrm", "--no-belady", "--oversubscribe", "0%,100%", "--csv"
    ).csv
    assert [(r["policy"], int(r["near_bytes"]) >> 20) for r in rows] == [("lrm", 16), ("lrm", 8)]


def test_compare_takes_prefetchers_too(works, small):
    rows = works(
        "compare", small, "-e", "lrm", "--no-belady", "--prefetch", "none,region", "--json"
    ).json
    assert [r["policy"] for r in rows] == ["lrm + none", "lrm + region"]


def test_compare_agrees_with_run(works, small):
    (row,) = works("compare", small, "-e", "mru", "--no-belady", "--near", "8MiB", "--json").json
    run = works("run", small, "--eviction", "mru", "--near", "8MiB", "--json").json
    assert row["run"] == run["key"]
    assert row["time_ns"] == run["summary"]["time_ns"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_compare_plots(works, small, tmp_path, suffix):
    works("compare", small, "-e", "lrm,mru", "--plot", f"race.{suffix}")
    assert begins_like_its_format(tmp_path / f"race.{suffix}")


# analyze


def test_analyze_shows_the_curve(works, small):
    out = works("analyze", small, "--shards", "100%").out
    assert f"{small}: 512 touches of 8 regions, 16.0 MiB" in out
    for word in ("LRU misses with", "reuse distance", "first touch", "sampled"):
        assert word in out


def test_analyze_json(works, small):
    data = works("analyze", small, "--unit", "page", "--json").json
    assert data.keys() == {
        "name",
        "unit",
        "unit_bytes",
        "touches",
        "distinct",
        "curve",
        "histogram",
        "footprint",
    }
    assert (data["unit"], data["unit_bytes"], data["touches"], data["distinct"]) == (
        "page",
        64 << 10,
        512,
        256,
    )
    # a loop: LRU finds nothing until all of it fits, and then all but the first pass
    assert [(p["bytes"], p["misses"]) for p in data["curve"]][-1] == (16 << 20, 256)
    assert all(p["misses"] == 512 for p in data["curve"][:-1])


def test_analyze_csv_is_the_curve(works, small):
    rows = works("analyze", small, "--shards", "50%", "--csv").csv
    assert rows[0].keys() == {"bytes", "misses", "ratio", "sampled_ratio"}
    assert [int(r["bytes"]) for r in rows] == sorted(int(r["bytes"]) for r in rows)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", FORMATS)
def test_analyze_plots(works, small, tmp_path, suffix):
    works("analyze", small, "--plot", f"curve.{suffix}")
    assert begins_like_its_format(tmp_path / f"curve.{suffix}")


# list


@pytest.mark.parametrize(
    ("kind", "column", "expected"),
    [
        (
            "workloads",
            "workload",
            {"blackscholes", "chase", "cyclic", "matmul", "stencil", "stream", "uniform", "zipf"},
        ),
        ("policies", "policy", {*SHIPPED, "none", "tree", "region", "um", "host"}),
        ("systems", "system", {"uvm"}),
        (
            "machines",
            "machine",
            {"rtx3090-pcie4", "a100-pcie3-ssd", "v100-nvlink2", "gpgpusim-28sm", "gh200"},
        ),
    ],
)
def test_list(works, kind, column, expected):
    rows = works("list", kind, "--json").json
    assert {r[column] for r in rows} >= expected
    assert {r[column] for r in works("list", kind, "--csv").csv} == {r[column] for r in rows}
    table = works("list", kind).out
    assert all(f"  {name} " in table for name in expected)
    for row in rows:
        assert all(row[k] for k in row if k != "options"), f"{row} leaves something unsaid"


def test_a_policy_that_says_nothing_of_itself_is_listed(works, monkeypatch):
    monkeypatch.setattr(eviction.find("fifo"), "__doc__", None)
    assert "fifo" in works("list", "eviction").out


def test_list_tells_all_about_one(works):
    shown = works("list", "eviction", "tournament").out
    assert "Algorithm 1" in shown
    assert "regions before a judgement" in shown
    assert "\ncompiled\n" in shown
    assert works("list", "tiering", "tier-reuse", "--json").json["runs"] == "compiled"
    runs = works("list", "eviction", "hpe", "--json").json["runs"]
    assert re.match(r"runs in Python: line \d+: self.kind is a str", runs)
    about = works("list", "policies", "cp", "--json").json
    assert about["name"] == "cp"
    assert {
        "option": "floor",
        "default": "0.01",
        "allowed": "at least 0, at most 1",
    }.items() <= about["options"][1].items()
    sizes = {
        o["option"]: o["default"]
        for o in works("list", "workloads", "zipf", "--json").json["options"]
    }
    assert sizes["bytes"] == "1.00 GiB"


def test_list_shows_options(works):
    options = {r["policy"]: r["options"] for r in works("list", "policies", "--json").json}
    assert options["tree"] == "threshold=51"
    assert options["lrm"] == ""


# trace


def test_trace_save_and_info(works, small, tmp_path):
    assert works("trace", "save", small, "c.parquet").out.startswith(
        f"saved {small} to c.parquet, "
    )
    assert [p.name for p in tmp_path.iterdir()] == ["c.parquet"]
    out = works("trace", "info", "c.parquet").out
    assert f"{small}, assumed, pages / regions of 64.0 KiB / 2.00 MiB" in out
    assert (
        "footprint 16.0 MiB, 16.0 MiB touched; 512 touches, 0% of them writes, 32.0 MiB used" in out
    )


def test_info_is_the_same_from_the_file_and_from_the_workload(works, small):
    works("trace", "save", small, "c.parquet")
    from_file = works("trace", "info", "c.parquet", "--json").json
    assert from_file == works("trace", "info", small, "--json").json
    assert from_file.keys() == {
        "name",
        "provenance",
        "page_bytes",
        "region_bytes",
        "footprint_bytes",
        "touched_pages",
        "live_peak_pages",
        "touches",
        "writes",
        "bytes",
        "objects",
        "launches",
        "working_set",
    }
    expected = {"name": "pass", "blocks": 64, "touches": 256, "bytes": 16 << 20}
    assert [{key: row[key] for key in expected} for row in from_file["launches"]] == [expected] * 2


def test_info_csv_is_the_launches(works):
    rows = works("trace", "info", "cyclic(bytes=1MiB, passes=15)", "--csv").csv
    assert [(r["name"], int(r["touches"])) for r in rows] == [("pass", 16)] * 15


def test_info_does_not_list_launches_without_end(works):
    out = works("trace", "info", "cyclic(bytes=1MiB, passes=15)").out
    assert out.count("  pass ") == 12
    assert "… 3 more" in out


def test_every_verb_takes_a_trace_file(works, small):
    works("trace", "save", small, "c.parquet")
    for verb in (["run", "--no-cache"], ["analyze"], ["trace", "info"]):
        assert works(*verb, "c.parquet", "--csv").out == works(*verb, small, "--csv").out
    for by_file, by_name in zip(
        works("compare", "c.parquet", "--csv", "--no-cache").csv,
        works("compare", small, "--csv", "--no-cache").csv,
        strict=True,
    ):
        # a run is named by its inputs, and a file is another input than a workload
        del by_file["run"], by_name["run"]
        assert by_file == by_name


def test_a_trace_file_can_be_saved_again(works, small, tmp_path):
    works("trace", "save", small, "c.parquet")
    before = works("trace", "info", "c.parquet", "--json").json
    works("trace", "save", "c.parquet", "c.parquet")
    assert works("trace", "info", "c.parquet", "--json").json == before
    assert [p.name for p in tmp_path.iterdir()] == ["c.parquet"]


# the rest


@pytest.mark.parametrize(
    "verb",
    [
        ["run"],
        ["compare"],
        ["analyze"],
        ["list"],
        ["trace"],
        ["trace", "save"],
        ["trace", "info"],
        [],
    ],
)
def test_every_verb_has_help(works, verb):
    assert "Usage: tidegate" in works(*verb, "--help").out
    assert works(*verb, "-h").out == works(*verb, "--help").out


def test_version(works):
    import tidegate

    assert works("--version").out == f"{tidegate.__version__}\n"


def test_systems_race_by_their_names(works, small):
    rows = works("compare", small, "--system", "uvm,lru,tm++", "--near", "8MiB", "--json").json
    assert [r["policy"] for r in rows] == ["uvm", "lru", "tm++", "belady"]
    first = works(
        "run", small, "--system", "tm+", "--eviction", "belady", "--near", "8MiB", "--json"
    ).json["summary"]
    line = works("compare", small, "--system", "tm+,uvm", "--near", "8MiB", "--json").json[-1]
    assert line["time_ns"] == first["time_ns"]  # Belady's line keeps the first system's prefetcher
    out = works("compare", small, "--system", "uvm,tm", "--no-belady").out
    assert "system" in out
    assert "against uvm" in out


def test_run_says_what_was_observed(works):
    workload = "cyclic(bytes=16MiB, passes=4)"
    assert "observations" in works("run", workload, "--system", "lru").out
    assert "observations" not in works("run", workload).out


def test_scale_observed_and_samples_reach_the_run(works):
    plain = works("run", "cyclic(bytes=16MiB)", "--system", "lru", "--json").json["summary"]
    half = works("run", "cyclic(bytes=32MiB)", "--scale", "1/2", "--system", "lru", "--json").json[
        "summary"
    ]
    assert half["footprint_bytes"] == plain["footprint_bytes"]
    one, four = (
        works("run", "cyclic(bytes=16MiB)", "--system", "lru", "--samples", n, "--json").json[
            "summary"
        ]
        for n in "14"
    )
    assert one["pages_sampled"] == one["observations"]
    assert four["pages_sampled"] > four["observations"]
    few, many = (
        works(
            "run", "zipf(bytes=64MiB, touches=20000)", "--system", "lru", "--observed", n, "--json"
        ).json["summary"]
        for n in ("1", "100")
    )
    assert few["observations"] < many["observations"]
