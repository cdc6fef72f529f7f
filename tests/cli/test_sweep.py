"""tidegate sweep: files, tables, exit codes, and one line for every mistake."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tidegate.cli import invoke
from tidegate.errors import TidegateError
from tidegate.experiments import load_sweep
from tidegate.experiments.sweeps import sweep as sweep_module
from tidegate.experiments.sweeps.executors import Here

SIZES = """
store = "out"

[run]
slots = 8

[axes]
workload = ["cyclic(bytes=8MiB)", "stream(bytes=8MiB)"]
eviction = ["lrm", "mru"]
near = ["4MiB", "6MiB"]
"""


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    """Runs are made in this process, which starts none."""
    monkeypatch.setattr(sweep_module, "executor_on", lambda on, workers: Here())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sizes.toml").write_text(SIZES)


def test_run_status_table_compact_and_plot(capsys, tmp_path):
    assert invoke(["sweep", "status", "sizes.toml"]) == 0
    assert f"0 of 8 runs are in {tmp_path}/out; 0 failed" in capsys.readouterr().out
    assert invoke(["sweep", "run", "sizes.toml"]) == 0
    assert "8 runs: 8 made in" in capsys.readouterr().out
    assert invoke(["sweep", "run", "sizes.toml", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["runs"], said["made"], said["there"]) == (8, 0, 8)
    assert invoke(["sweep", "table", "sizes.toml", "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == 8
    sweep = load_sweep("sizes.toml")
    for row, spec in zip(rows, sweep.specs, strict=True):
        assert int(row["faults"]) == spec.run(cache=False).counts["faults"]
    assert invoke(["sweep", "table", "sizes.toml"]) == 0
    assert "eviction=mru near=4MiB" in capsys.readouterr().out
    assert invoke(["sweep", "compact", "sizes.toml"]) == 0
    assert "became 1 in" in capsys.readouterr().out
    assert invoke(["sweep", "plot", "sizes.toml", "out.svg"]) == 0
    assert "mru" in (tmp_path / "out.svg").read_text()


def test_a_wrong_cluster_leaves_no_store_behind(capsys, tmp_path):
    assert invoke(["sweep", "run", "sizes.toml", "--on", "somewhere"]) == 2
    assert "on must be an address" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["sizes.toml"]


def test_a_failure_is_exit_code_1_and_a_table(capsys, tmp_path):
    (tmp_path / "sizes.toml").write_text(SIZES.replace('"6MiB"', '"1KiB"'))
    assert invoke(["sweep", "run", "sizes.toml"]) == 1
    said = capsys.readouterr().out
    assert "4 made" in said
    assert "4 failed" in said
    assert said.count("near memory must hold at least one region") == 4
    assert invoke(["sweep", "status", "sizes.toml"]) == 0
    assert capsys.readouterr().out.count("near memory must hold") == 4


def test_ctrl_c_says_how_to_go_on(capsys, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(sweep_module, "execute", stop)
    with pytest.raises(SystemExit) as ended:
        invoke(["sweep", "run", "sizes.toml"])
    assert ended.value.code == 130
    assert "run the same command again to go on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[axs]", "did you mean 'axes'"),
        ("[axes]\nworkload = ['cyclic']\nevction = ['lrm']", "did you mean 'eviction'"),
        ("[axes]\nworkload = ['cyclic']\nnear = []", "so the sweep has no runs"),
        ("", "a sweep needs a workload"),
        ("axes = 3", r"axes must be a table, \[axes\]"),
        ("[zip]\nnear=['1GiB']", r"zip must be written as \[\[zip\]\]"),
        ("[axes", "is not TOML"),
        ("store = 3\n[axes]\nworkload = ['cyclic']", "store must be a text"),
        ("[readings]", "needs a paper"),
        ("[readings]\npaper = 'observuv'", "did you mean 'observuvm'"),
        ("[readings]\npaper = 'observuvm'\ncout = 1", "did you mean 'count'"),
        ("[readings]\npaper = 'observuvm'\n[axes]\nworkload = ['MM']", "are both given"),
        ("[axes]\nworkload = ['cyclic']\nslots = [1.5]", "slots must be a whole number"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(tmp_path, text, line):
    (tmp_path / "wrong.toml").write_text(text)
    with pytest.raises(TidegateError, match=line):
        load_sweep("wrong.toml")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["run", "none.toml"], "no sweep file none.toml"),
        (["run", "sizes.toml", "--jobs", "4"], "--jobs and --cores are for Slurm"),
        (["run", "sizes.toml", "--store", "ftp://x"], "store must be a folder or one of s3://"),
        (["run", "sizes.toml", "--limit", "-1"], "limit must be a number of seconds above 0"),
        (["plot", "sizes.toml", "x.png"], "nothing to draw"),
        (["plot", "sizes.toml", "x.bmp"], "its name must end in .png"),
        (["table", "sizes.toml", "--json", "--csv"], "were both given"),
    ],
)
def test_wrong_words_are_one_line_and_exit_code_2(capsys, words, line):
    assert invoke(["sweep", *words]) == 2
    said = capsys.readouterr().err
    assert line in said
    assert said.count("\n") == 1


def test_readings_of_a_paper_are_a_sweep(tmp_path):
    text = '[readings]\npaper = "observuvm"\ncount = 3\nquick = true\n'
    (tmp_path / "open.toml").write_text(text)
    sweep = load_sweep("open.toml")
    assert len(sweep.names) == len(set(sweep.names)) > 10
