"""Grids: the same runs on any number of workers, in the order given."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tidegate.errors import PolicyError, TidegateError, UnknownName
from tidegate.experiments import RunSpec, run_grid

SPECS = [
    RunSpec(
        workload, machine="rtx3090-pcie4", near=near, eviction=policy, prefetch="tree", slots=slots
    )
    for workload in ("cyclic(bytes=32MiB, passes=3)", "zipf(bytes=32MiB, touches=5000)")
    for near in ("8MiB", "24MiB")
    for policy, slots in (("lrm", 64), ("random(seed=3)", 8), ("belady", 64), ("lru-ideal", None))
]
SMALL = "cyclic(bytes=8MiB)"

BROKEN = """
from tidegate.policy import EvictionPolicy

class Broken(EvictionPolicy):
    def victim(self):
        raise ValueError("no")
"""


@pytest.mark.slow
def test_runs_are_the_same_bit_for_bit_on_any_number_of_workers():
    done: list[RunSpec] = []
    alone = run_grid(SPECS, workers=1, cache=False)
    together = run_grid(SPECS, workers=2, cache=False, progress=done.append)
    assert alone == together
    assert sorted(map(id, done)) == sorted(map(id, SPECS))
    assert [r.facts["eviction"] for r in together] == [str(a.eviction) for a in SPECS]


def test_an_executor_of_ones_own_is_used_and_left_open():
    asks = SPECS[:3]
    with ThreadPoolExecutor(1) as executor:
        runs = run_grid(asks, executor=executor, cache=False)
        assert executor.submit(int, "1").result() == 1
    assert runs == run_grid(asks, workers=1, cache=False)


def test_no_asks_no_runs():
    assert run_grid([]) == []


def test_progress_is_told_of_every_ask():
    done: list[RunSpec] = []
    run_grid(SPECS[:2], workers=1, cache=False, progress=done.append)
    assert done == SPECS[:2]


@pytest.mark.slow
def test_what_goes_wrong_in_a_worker_is_said_as_clearly_as_here(tmp_path):
    (tmp_path / "broken.py").write_text(BROKEN)
    with pytest.raises(PolicyError, match=r"policy 'Broken' raised in victim\(\): ValueError: no"):
        run_grid(
            [RunSpec(SMALL, near="4MiB", eviction=f"{tmp_path / 'broken.py'}")] * 2,
            workers=2,
            cache=False,
        )
    with pytest.raises(TidegateError, match="near memory must hold at least one region"):
        run_grid([RunSpec(SMALL, near=1)] * 2, workers=2, cache=False)


@pytest.mark.slow
def test_an_unknown_name_in_a_worker_is_said_as_clearly_as_here():
    with pytest.raises(UnknownName, match="did you mean 'lrm'"):
        run_grid([RunSpec(SMALL, eviction="lrmm")] * 2, workers=2, cache=False)
