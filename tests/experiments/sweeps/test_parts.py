"""The store: parts named by content, resumed, merged, and read by others in place."""

from __future__ import annotations

import os

import polars as pl
import pytest

from tidegate import Sweep, TidegateError
from tidegate.experiments import RunSpec
from tidegate.experiments.sweeps import sweep as sweep_module
from tidegate.experiments.sweeps.batches import Batch, Task
from tidegate.experiments.sweeps.executors import Here
from tidegate.experiments.sweeps.parts import WHOLE, RowsOfRuns, row_of, unpacked
from tidegate.experiments.sweeps.places import Folder, place_of

SPECS = [
    RunSpec("cyclic(bytes=8MiB)", near=near, eviction=policy, slots=8)
    for near in ("4MiB", "6MiB")
    for policy in ("lrm", "mru", "random(seed=1)")
]


@pytest.fixture(autouse=True)
def _here(monkeypatch):
    """Runs are made in this process, which starts none."""
    monkeypatch.setattr(sweep_module, "executor_on", lambda on, workers: Here())


def test_rows_are_the_figures_of_the_runs(tmp_path):
    sweep = Sweep(SPECS, tmp_path)
    swept = sweep.run()
    assert (swept.runs, swept.made, swept.there, swept.failures) == (6, 6, 0, [])
    table = sweep.table()
    assert table["run"].to_list() == sweep.names
    for spec, row in zip(SPECS, table.iter_rows(named=True), strict=True):
        expected = spec.run(cache=False).summary
        assert {k: row[k] for k in expected} == expected


def test_only_what_is_missing_is_made(tmp_path):
    Sweep(SPECS[:4], tmp_path).run()
    again = Sweep(SPECS[2:], tmp_path).run()
    assert (again.made, again.there) == (2, 2)
    assert Sweep(SPECS, tmp_path).run().made == 0
    assert Sweep(SPECS, tmp_path).status() == (6, 6, 0)
    assert pl.read_parquet(f"{tmp_path}/parts/*.parquet", columns=["run"])["run"].is_unique().all()


def test_a_sweep_with_equal_runs_makes_them_once(tmp_path):
    sweep = Sweep([SPECS[0], SPECS[1], SPECS[0]], tmp_path)
    assert sweep.run(whole=True).made == 2
    first, second, third = sweep.runs()
    assert first == third != second


def test_a_batch_done_twice_is_one_file(tmp_path):
    work = RowsOfRuns(Folder(tmp_path))
    tasks = tuple(Task(i, spec, f"{i:032}", "{}") for i, spec in enumerate(SPECS[:2]))
    for _ in range(2):
        Batch(tasks, work).perform()
    assert len(os.listdir(tmp_path / "parts")) == 1
    assert work.recover(tasks) == [None, None]
    assert work.recover(tasks[:1]) is None


def test_what_fails_is_told_apart_and_tried_again(tmp_path):
    specs = [SPECS[0], RunSpec("cyclic(bytes=8MiB)", near=1)]
    sweep = Sweep(specs, tmp_path)
    for _ in range(2):
        swept = sweep.run()
        ((settings, reason),) = swept.failures
        assert "near memory must hold at least one region" in reason
        assert '"near": 1' in settings
        assert sweep.status() == (2, 1, 1)
    assert sweep.failures()["failed"].to_list() == [reason]
    assert sweep.table().height == 1
    # once it was made, it no longer counts as failed
    RowsOfRuns(Folder(tmp_path)).finish(
        [Task(1, None, sweep.names[1])], [row_of(sweep.tasks[1], SPECS[0].run(cache=False))]
    )
    assert sweep.status() == (2, 2, 0)
    assert sweep.results.compact() == (3, 1)


def test_compact_keeps_every_row(tmp_path):
    sweep = Sweep(SPECS, tmp_path)
    for i in range(len(SPECS)):
        Sweep(SPECS[i : i + 1], tmp_path).run()
    before = sweep.table()
    assert sweep.results.compact() == (6, 1)
    assert Sweep(SPECS, tmp_path).table().equals(before)
    assert sweep.results.compact() == (1, 1)


def test_rows_of_two_and_three_tiers_are_one_table(tmp_path):
    tiers = RunSpec("cyclic(bytes=8MiB)", tiering="tier-order", near="1MiB", middle="4MiB")
    sweep = Sweep([SPECS[0], tiers], tmp_path)
    sweep.run()
    assert sweep.table()["far_reads"].to_list() == [None, 512]


def test_columns_do_not_depend_on_which_runs_share_a_part(tmp_path):
    tiers = RunSpec("cyclic(bytes=8MiB)", tiering="tier-order", near="1MiB", middle="4MiB")
    specs = [SPECS[0], tiers]
    parts = {"together": [specs], "apart": [[spec] for spec in specs], "turned": [specs[::-1]]}
    for name, batches in parts.items():
        for batch in batches:
            Sweep(batch, tmp_path / name).run()
    one, two, three = (Sweep(specs, tmp_path / name).table() for name in parts)
    assert one.equals(two)
    assert one.equals(three)
    assert one.columns[:3] == ["run", "workload", "machine"]


def test_whole_runs_only_when_asked_for(tmp_path):
    sweep = Sweep(SPECS[:2], tmp_path / "figures")
    sweep.run()
    with pytest.raises(TidegateError, match="has figures only"):
        sweep.runs()
    whole = Sweep(SPECS[:2], tmp_path / "whole")
    whole.run(whole=True)
    for spec, run in zip(SPECS, whole.runs(), strict=False):
        expected = spec.run(cache=False)
        assert run.timeline.equals(expected.timeline)
        assert run.summary == expected.summary


@pytest.mark.extra
def test_duckdb_reads_the_parts_in_place(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    sweep = Sweep(SPECS, tmp_path)
    sweep.run()
    found = duckdb.sql(f"select run, faults from read_parquet('{tmp_path}/parts/*.parquet')")
    assert dict(found.fetchall()) == dict(sweep.table().select("run", "faults").rows())


def test_what_was_done_of_an_interrupted_batch_is_written(tmp_path, monkeypatch):
    work = RowsOfRuns(Folder(tmp_path), WHOLE)
    tasks = tuple(Task(i, spec, f"{i:032}", "{}") for i, spec in enumerate(SPECS))

    def run(self, task):
        if task.index == 3:
            raise KeyboardInterrupt
        return {"run": task.name}

    monkeypatch.setattr(RowsOfRuns, "run", run)
    with pytest.raises(KeyboardInterrupt):
        Batch(tasks, work).perform()
    (part,) = (tmp_path / "parts").iterdir()
    assert unpacked(part.read_bytes())["run"].to_list() == [f"{i:032}" for i in range(3)]


def test_a_damaged_part_is_named(tmp_path):
    sweep = Sweep(SPECS[:1], tmp_path)
    sweep.run()
    (part,) = (tmp_path / "parts").iterdir()
    part.write_bytes(b"PAR1")
    with pytest.raises(TidegateError, match=f"{part.name} is damaged .* remove it"):
        Sweep(SPECS[:1], tmp_path).run()


def test_a_store_that_cannot_be_used_is_refused_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(sweep_module, "execute", lambda *_, **__: pytest.fail("it ran"))
    (tmp_path / "file").write_text("")
    with pytest.raises(TidegateError, match=r"cannot use the store .*; give another"):
        Sweep(SPECS[:1], tmp_path / "file" / "inside").run()
    with pytest.raises(TidegateError, match=r"store must be a folder or one of s3://"):
        place_of("ftp://somewhere")
    with pytest.raises(TidegateError, match="limit must be a number of seconds above 0"):
        Sweep(SPECS[:1], tmp_path).run(limit=0)
