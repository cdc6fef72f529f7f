"""A Dask cluster on this machine: the same rows, though its workers are killed."""

from __future__ import annotations

import pytest

from killed_sweeps import check_whole, deadly_runs, tiny_runs
from tidegate import RunSpec, Sweep, TidegateError
from tidegate.experiments import Slurm
from tidegate.experiments.sweeps import cluster as cluster_module
from tidegate.experiments.sweeps.cluster import executor_on

pytestmark = pytest.mark.extra
distributed = pytest.importorskip("distributed", reason="needs tidegate[cluster]")

MINE = """
import helper
from tidegate.policy import EvictionPolicy

class Mine(EvictionPolicy):
    def on_fault(self, region):
        if region not in self.order:
            self.order.move_to_tail(region)

    def on_eviction(self, region):
        self.order.remove(region)

    def victim(self):
        return helper.choose(self.order)
"""


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        ) as made,
        distributed.Client(made, set_as_default=False) as found,
    ):
        yield found


def test_rows_are_those_of_the_process_pool(client, tmp_path):
    specs = [
        *tiny_runs(20),
        RunSpec("zipf(bytes=8MiB, touches=3000)", near="4MiB", system="tm"),
        RunSpec("cyclic(bytes=8MiB)", tiering="tier-order", near="1MiB", middle="4MiB"),
    ]
    there, here = Sweep(specs, tmp_path / "there"), Sweep(specs, tmp_path / "here")
    assert there.run(on=client).made == here.run(workers=1).made == 22
    assert there.table().equals(here.table())


def test_users_files_travel_and_the_workers_folder_does_not_matter(client, tmp_path, monkeypatch):
    import os

    place = tmp_path / "mine"
    place.mkdir()
    (place / "mine.py").write_text(MINE)
    (place / "helper.py").write_text("def choose(order): return order.head\n")
    monkeypatch.chdir(place)
    specs = [
        RunSpec("cyclic(bytes=8MiB)", near="4MiB", eviction=name, slots=1, compiled=False)
        for name in ("mine.py:Mine", "fifo")
    ]
    sweep = Sweep(specs, tmp_path / "store")
    assert sweep.tasks  # the files are read here
    (place / "mine.py").rename(place / "elsewhere.py")
    os.unlink(place / "helper.py")
    monkeypatch.setattr("tidegate.experiments.sweeps.sweep.look_up", lambda specs: None)
    assert sweep.run(on=client).failures == []
    mine, fifo = sweep.table()["faults"]
    assert mine == fifo


def test_killed_workers_are_restarted_and_every_run_is_made_once(client, tmp_path):
    deadly, marks = deadly_runs(tmp_path, 2)
    sweep = Sweep([*tiny_runs(98), *deadly], tmp_path / "store")
    swept = sweep.run(on=client)
    assert all(mark.exists() for mark in marks)
    assert (swept.made, swept.failures) == (100, [])
    check_whole(sweep)


def test_a_cluster_that_lost_all_its_workers_is_one_line():
    def wait_for_ever(cluster):
        cluster._most_alone = 0.5
        while True:
            cluster.wait(0.1)

    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        ) as made,
        distributed.Client(made, set_as_default=False) as found,
    ):
        cluster = cluster_module.Cluster(found)
        made.scale(0)
        with pytest.raises(TidegateError, match=r"has had no workers for \d+ s; start some"):
            wait_for_ever(cluster)


def test_other_code_on_the_cluster_is_refused_before_anything_runs(client, tmp_path, monkeypatch):
    sweep = Sweep(tiny_runs(1), tmp_path)
    sweep.tasks  # noqa: B018
    monkeypatch.setattr(cluster_module, "version_of", lambda package: "9.9")
    with pytest.raises(TidegateError, match=r"has tidegate 0\.1\.0, here it is 9\.9; install"):
        sweep.run(on=client)
    assert not list((tmp_path / "parts").glob("*")) if (tmp_path / "parts").exists() else True


def test_a_cluster_without_workers_is_refused(monkeypatch):
    monkeypatch.setattr(cluster_module, "FIRST_WORKER", 0.2)
    with (
        distributed.LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=None) as empty,
        distributed.Client(empty, set_as_default=False) as found,
        pytest.raises(TidegateError, match="has no workers; start one with 'dask worker"),
    ):
        cluster_module.Cluster(found, patience=0.2)


@pytest.mark.parametrize(
    ("on", "line"),
    [
        ("tcp://127.0.0.1:9", "no Dask scheduler answers at tcp://127.0.0.1:9"),
        ("somewhere", "on must be an address such as tcp://host:8786"),
        ("tcp://", "no Dask scheduler answers"),
        (object(), "on must be an address or a distributed.Client"),
    ],
)
def test_what_is_no_cluster_is_refused(on, line, monkeypatch):
    monkeypatch.setattr(cluster_module, "CONNECT", 1)
    with pytest.raises(TidegateError, match=line):
        executor_on(on)
    with pytest.raises(TidegateError, match="workers and on were both given"):
        executor_on("tcp://127.0.0.1:9", workers=2)


def test_the_job_script_of_slurm(monkeypatch):
    pytest.importorskip("dask_jobqueue", reason="needs tidegate[cluster]")
    with Slurm("gpu", jobs=40, cores=16).cluster() as made:
        script = made.job_script()
    for line in (
        "#SBATCH -p gpu",
        "#SBATCH -n 1",
        "#SBATCH --cpus-per-task=16",
        "#SBATCH --mem=32G",
        "#SBATCH -t 04:00:00",
    ):
        assert line in script.splitlines()
    (command,) = (
        line for line in script.splitlines() if "dask worker" in line or "dask_worker" in line
    )
    assert "--nworkers 16" in command
    assert "--nthreads 1" in command
    assert "tcp://" in command
