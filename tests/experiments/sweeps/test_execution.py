"""Execution: every task is answered once, whatever happens to workers."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import TidegateError
from tidegate.experiments.sweeps.batches import TRIES, Batch, Failed, Task, Work
from tidegate.experiments.sweeps.execution import DONE_ELSEWHERE, execute, run_all
from tidegate.experiments.sweeps.executors import BatchExecutor, Lost, NotPacked
from tidegate.experiments.sweeps.pending import MOST, SECONDS, Pending


@dataclass(frozen=True)
class Spec:
    """A stand-in for a run: its number, and the trace that it shares with others."""

    number: int
    trace_key: int = 0


class Double(Work):
    """Answers with twice the number."""

    shares_traces = False

    def run(self, task: Task) -> int:
        return 2 * task.spec.number


@dataclass
class Unreliable(BatchExecutor):
    """Loses batches by a script of booleans, and those with a poisonous task always."""

    losses: list[bool]
    poison: frozenset[int] = frozenset()
    workers: int = 2
    travels: bool = True
    _waiting: list[Batch] = field(default_factory=list)
    begun: Counter[int] = field(default_factory=Counter)
    stopped: bool = False

    def submit(self, batch: Batch) -> None:
        self._waiting.append(batch)

    def wait(self, seconds: float) -> list[tuple[Batch, Any]]:
        batch = self._waiting.pop()
        self.begun.update(task.index for task in batch.tasks)
        if self.poison & {task.index for task in batch.tasks}:
            return [(batch, Lost("it ended"))]
        if self.losses and self.losses.pop() and len(batch.tasks) > 1:
            return [(batch, Lost("killed"))]
        return [(batch, batch.perform() if self.travels else NotPacked())]

    def stop(self) -> None:
        self.stopped = True


def tasks_of(traces: list[int]) -> list[Task]:
    return [Task(i, Spec(i, trace), f"run {i}") for i, trace in enumerate(traces)]


TRACES = st.lists(st.integers(0, 3), min_size=1, max_size=60)


@given(TRACES, st.lists(st.booleans(), max_size=40), st.sets(st.integers(0, 59), max_size=4))
def test_every_task_is_answered_once_though_batches_are_lost(traces, losses, poison):
    tasks = tasks_of(traces)
    executor = Unreliable(losses, frozenset(poison))
    done = list(execute(tasks, Double(), executor))
    assert sorted(task.index for task, _ in done) == list(range(len(tasks)))
    for task, outcome in done:
        if task.index in poison:
            assert isinstance(outcome, Failed)
            assert outcome.reason == "it ended"
            # in a batch with others, perhaps more than once, then alone
            assert executor.begun[task.index] >= TRIES
        else:
            assert outcome == 2 * task.spec.number
    assert executor.stopped


@given(TRACES)
def test_a_batch_that_cannot_travel_is_done_here(traces):
    executor = Unreliable([], travels=False)
    assert len(list(execute(tasks_of(traces), Double(), executor))) == len(traces)


@given(TRACES, st.integers(1, 8))
def test_pending_gives_each_task_once_and_of_one_trace_where_it_can(traces, workers):
    tasks = tasks_of(traces)
    pending = Pending(tasks, Double(), None, workers)
    taken: list[Task] = []
    after = None
    while pending:
        after = pending.take(after)
        taken += after.tasks
    assert sorted(t.index for t in taken) == list(range(len(tasks)))
    keys = [t.trace_key for t in taken]
    if workers == 1:  # one worker after another never goes back to a trace that it has left
        assert len([k for k, n in itertools.pairwise(keys) if k != n]) < len(set(keys))


@pytest.mark.slow
@pytest.mark.parametrize(("seconds", "expected"), [(0.001, 1000), (0.1, 10), (30.0, 1)])
def test_batches_grow_until_they_take_a_second(seconds, expected):
    pending = Pending(tasks_of([0] * 100_000), Double(), None, workers=2)
    for _ in range(3):
        batch = pending.take()
        pending.done(batch, seconds * len(batch.tasks))
    size = len(pending.take().tasks)
    assert size == min(MOST, max(1, round(SECONDS / seconds))) == expected


@pytest.mark.slow
def test_batches_are_longer_where_there_are_many_workers():
    pending = Pending(tasks_of([0] * 1_000_000), Double(), None, workers=1000)
    batch = pending.take()
    pending.done(batch, 0.1 * len(batch.tasks))
    assert len(pending.take().tasks) == 100  # ten seconds


def test_what_another_sweep_made_meanwhile_is_left_out(monkeypatch):
    from tidegate.experiments.sweeps import execution

    clock = iter(range(0, 10_000, 2))
    monkeypatch.setattr(execution.time, "monotonic", lambda: float(next(clock)))
    tasks = tasks_of([0] * 50)
    made_elsewhere = {f"run {i}" for i in range(20, 50)}
    executor = Unreliable([])
    done = {
        task.index: outcome
        for task, outcome in execute(tasks, Double(), executor, elsewhere=lambda: made_elsewhere)
    }
    left_out = {i for i, outcome in done.items() if outcome is DONE_ELSEWHERE}
    assert len(done) == 50
    assert left_out
    assert left_out <= set(range(20, 50))
    assert not left_out & set(executor.begun)


class Raising(Work):
    """Raises for odd numbers, and counts how often each was tried."""

    shares_traces = False

    def __init__(self) -> None:
        self.tried: Counter[int] = Counter()

    def run(self, task: Task) -> int:
        self.tried[task.index] += 1
        if task.spec.number % 2:
            raise ValueError("odd\nsecond line")
        return 0


def test_a_run_that_raises_is_tried_twice_and_the_others_go_on():
    work = Raising()
    found = run_all([Spec(i) for i in range(5)], work, workers=1)
    assert [isinstance(f, Failed) for f in found] == [False, True, False, True, False]
    assert found[1].reason == "ValueError: odd"
    assert work.tried == {0: 1, 1: TRIES, 2: 1, 3: TRIES, 4: 1}
    with pytest.raises(ValueError, match="odd"):
        run_all([Spec(1)], Raising(), workers=1, stop_at_failure=True)


class Rude(Exception):
    """Cannot be unpickled."""

    def __init__(self, one, two):
        super().__init__(f"{one} {two}")


class RaisingRudely(Work):
    shares_traces = False

    def run(self, task: Task) -> int:
        raise Rude("no", "way")


def test_an_error_that_cannot_be_sent_is_told_by_its_line():
    (failed,) = run_all([Spec(1)], RaisingRudely(), workers=1)
    assert (failed.reason, failed.error) == ("Rude: no way", None)
    with pytest.raises(TidegateError, match="Rude: no way"):
        run_all([Spec(1)], RaisingRudely(), workers=1, stop_at_failure=True)
