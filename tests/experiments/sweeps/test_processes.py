"""Worker processes: killed ones are replaced, poisonous runs are found, a stopped sweep goes on."""

from __future__ import annotations

import signal

import pytest

from killed_sweeps import (
    check_whole,
    deadly_runs,
    killing,
    own_workers,
    start_client,
    tiny_runs,
    wait_for_rows,
)
from tidegate import RunSpec, Sweep
from tidegate.experiments.sweeps.batches import Failed, WholeRuns
from tidegate.experiments.sweeps.execution import run_all
from tidegate.experiments.sweeps.processes import KeptProcesses

POISON = """
import os, time
from tidegate.policy import EvictionPolicy, Option

class Poison(EvictionPolicy):
    how = Option("raise", "what it does", choices=("raise", "memory", "exit", "endless"))
    seed = Option(0, "makes runs different")

    def victim(self):
        with open({log!r}, "a") as log:
            log.write(self.how + "\\n")
        if self.how == "raise":
            raise ValueError("poisonous")
        if self.how == "memory":
            raise MemoryError("no room")
        if self.how == "exit":
            os._exit(7)
        time.sleep(3600)
"""


@pytest.mark.slow
def test_killed_workers_are_replaced_and_every_run_is_made_once(tmp_path):
    deadly, marks = deadly_runs(tmp_path, 3)
    sweep = Sweep([*tiny_runs(97), *deadly], tmp_path / "store")
    with killing(own_workers, times=1):
        swept = sweep.run(workers=2)
    assert all(mark.exists() for mark in marks)
    assert (swept.made, swept.failures) == (100, [])
    check_whole(sweep)
    assert not own_workers()


@pytest.mark.slow
def test_poisonous_runs_are_tried_twice_and_recorded_while_the_others_go_on(tmp_path):
    log = tmp_path / "log"
    (tmp_path / "poison.py").write_text(POISON.format(log=str(log)))
    poison = f"{tmp_path}/poison.py:Poison"
    hows = {
        "raise": "policy 'Poison' raised in victim(): ValueError: poisonous",
        "memory": "MemoryError: no room",
        "exit": "its process ended with code 7",
        "endless": "it took longer than the limit of 5 s",
    }
    bad = [
        RunSpec("cyclic(bytes=4MiB)", near="2MiB", compiled=False, eviction=f"{poison}(how={how})")
        for how in hows
    ]
    sweep = Sweep([*tiny_runs(6), *bad], tmp_path / "store")
    swept = sweep.run(workers=1, limit=5)
    assert swept.made == 6
    reasons = [reason for _, reason in swept.failures]
    for how, expected in hows.items():
        assert sum(expected in reason for reason in reasons) == 1, (how, reasons)
        # one that ends its process costs the others of its batch, which are then done again
        assert 2 <= log.read_text().splitlines().count(how) <= 4
    assert sweep.status() == (10, 6, 4)
    assert sorted(sweep.failures()["failed"]) == sorted(reasons)


@pytest.mark.slow
def test_a_run_that_ends_its_process_is_an_outcome_of_a_grid_too(tmp_path):
    (tmp_path / "poison.py").write_text(POISON.format(log=str(tmp_path / "log")))
    bad = RunSpec(
        "cyclic(bytes=4MiB)",
        near="2MiB",
        compiled=False,
        eviction=f"{tmp_path}/poison.py:Poison(how=exit)",
    )
    first, second, third = run_all([*tiny_runs(2), bad], WholeRuns(cache=False), workers=2)
    assert isinstance(third, Failed)
    assert (first, second) == tuple(s.run(cache=False) for s in tiny_runs(2))


def test_kept_processes_serve_several_grids():
    kept, work = KeptProcesses(1), WholeRuns(cache=False)
    try:
        first = run_all(tiny_runs(2), work, executor=kept)
        (worker,) = own_workers()
        second = run_all(tiny_runs(2), work, executor=kept)
        assert own_workers() == [worker]
    finally:
        kept.close()
    assert first == second
    assert not own_workers()


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_sweep_goes_on_where_it_was(tmp_path, how):
    sweep = Sweep(tiny_runs(400), tmp_path)
    client = start_client(str(tmp_path), 400, workers=2)
    wait_for_rows(sweep.place, 10, client)
    client.send_signal(how)
    client.communicate(timeout=300)
    swept = sweep.run(workers=2)
    assert swept.there >= 10
    assert swept.made == 400 - swept.there
    check_whole(sweep)


@pytest.mark.slow
def test_two_sweeps_at_once_share_the_work(tmp_path):
    sweep = Sweep(tiny_runs(300), tmp_path)
    clients = [start_client(str(tmp_path), 300, workers=1) for _ in range(2)]
    for client in clients:
        _, complaint = client.communicate(timeout=300)
        assert client.returncode == 0, complaint
    assert sweep.table().height == 300
    assert sweep.status() == (300, 300, 0)
    assert sweep.run(workers=1).made == 0
