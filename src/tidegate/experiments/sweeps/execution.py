"""Execution: the one way in which many runs are made, on any executor.

    tasks ─▶ Pending ─▶ batches ─▶ executor ─▶ outcomes, as they come

A worker that ends costs its batch: the tasks of it are done again, one at a time. A task that ends
its worker twice when alone has failed.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing
from typing import Any

from tidegate.errors import TidegateError
from tidegate.experiments.sweeps.batches import TRIES, Batch, Done, Failed, Task, Work
from tidegate.experiments.sweeps.executors import BatchExecutor, Futures, Here, Lost, NotPacked
from tidegate.experiments.sweeps.pending import Pending

POLL = 0.2  # seconds: an endless wait may miss Ctrl-C if another thread gets the signal
SERIAL_BELOW = 8  # starting a worker process takes longer than a few runs
STARTS = 10  # workers that end while they start count as one that ends in a task
DONE_ELSEWHERE = object()  # the outcome of a run that another sweep made meanwhile


def execute(
    tasks: Iterable[Task],
    work: Work,
    executor: BatchExecutor,
    *,
    limit: float | None = None,
    elsewhere: Callable[[], Container[str]] | None = None,
) -> Generator[tuple[Task, Any], None, None]:
    """Yield every task with its outcome, as they are done: an answer or ``Failed``.

    ``elsewhere``: returns the names of runs that others have made; it is called now and then.
    """
    pending = Pending(tasks, work, limit, executor.workers)
    # how often a task's worker ended, by the task's place; see STARTS
    alone: Counter[int] = Counter()
    under_way, refreshed, cost = 0, time.monotonic(), 0.0
    freed: list[Batch] = []
    try:
        while pending or under_way:
            while pending and under_way < executor.workers * executor.ahead:
                executor.submit(pending.take(freed.pop() if freed else None))
                under_way += 1
            freed.clear()
            for batch, outcome in executor.wait(POLL):
                under_way -= 1
                freed.append(batch)
                if isinstance(outcome, NotPacked):
                    outcome = batch.perform()
                pending.done(batch, outcome.seconds if isinstance(outcome, Done) else None)
                if isinstance(outcome, Done):
                    yield from zip(batch.tasks, outcome.outcomes, strict=True)
                elif (found := work.recover(batch.tasks)) is not None:
                    yield from zip(batch.tasks, found, strict=True)
                else:
                    yield from _give_back(batch, outcome, pending, alone)
            if elsewhere and pending and time.monotonic() - refreshed > max(1.0, 20 * cost):
                began = time.monotonic()
                yield from ((t, DONE_ELSEWHERE) for t in pending.drop(elsewhere()))
                refreshed = time.monotonic()
                cost = refreshed - began
    finally:
        executor.stop()


def _give_back(
    batch: Batch, lost: Lost, pending: Pending, alone: Counter[int]
) -> Iterator[tuple[Task, Failed]]:
    """Put the tasks of a lost batch back; yield the one that has failed.

    A worker that ended while it started counts for less: the task had not begun.
    """
    if len(batch.tasks) == 1:
        task = batch.tasks[0]
        alone[task.index] += STARTS if lost.begun else 1
        if lost.final or alone[task.index] >= TRIES * STARTS:
            error = TidegateError(f"the run failed: {lost.reason}")
            yield task, from_failure(batch.work, task, Failed(lost.reason, error))
            return
    pending.again(batch.tasks)


def from_failure(work: Work, task: Task, failed: Failed) -> Any:
    """Return the outcome of a run that no worker could finish; it is written down here."""
    return work.finish([task], [failed])[0]


def run_all(
    specs: Sequence[Any],
    work: Work,
    *,
    workers: int | None = None,
    executor: Executor | BatchExecutor | None = None,
    progress: Callable[[Any], None] = lambda spec: None,
    stop_at_failure: bool = False,
) -> list[Any]:
    """Return the outcome of every specification, in the order given.

    ``stop_at_failure``: raise the first error instead.
    """
    outcomes: list[Any] = [None] * len(specs)
    tasks = [Task(i, spec) for i, spec in enumerate(specs)]
    if isinstance(executor, Executor):
        executor = Futures(executor)
    chosen = executor or choose_executor(workers, len(specs))
    with closing(execute(tasks, work, chosen)) as done:
        for task, outcome in done:
            if stop_at_failure and isinstance(outcome, Failed):
                raise outcome.error or TidegateError(outcome.reason)
            outcomes[task.index] = outcome
            progress(task.spec)
    return outcomes


def choose_executor(workers: int | None, runs: int) -> BatchExecutor:
    """Return this process for a few runs, else processes, by default one per usable core."""
    workers = workers or (1 if runs < SERIAL_BELOW else len(os.sched_getaffinity(0)))
    if workers == 1:
        return Here()
    from tidegate.experiments.sweeps.processes import Processes

    return Processes(workers)
