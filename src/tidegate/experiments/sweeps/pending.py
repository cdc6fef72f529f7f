"""What is still to be done, and how much of it makes a batch.

A batch has runs of one trace where it can, and takes about as long as the executor wants: long
enough that handing it out costs little, and short, because a lost worker costs a batch.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Container, Iterable, Sequence
from typing import Any

from tidegate.experiments.sweeps.batches import Batch, Task, Work

SECONDS = 1.0  # of a batch, where there are few workers
# of a batch, for each worker: a Dask scheduler and its client take about 2 ms for a batch, so they
# are busy for a fifth of the time at any number of workers
SECONDS_PER_WORKER = 0.01
FIRST = 4  # runs of a batch before any has been timed
MOST = 2000


class Pending:
    """Tasks by trace; ``take`` makes a batch of some."""

    def __init__(self, tasks: Iterable[Task], work: Work, limit: float | None, workers: int):
        self._work, self._limit, self._workers = work, limit, workers
        self._groups: dict[Any, deque[Task]] = {}
        self._alone: deque[Task] = deque()  # each was in a batch whose worker ended
        self._active: Counter[Any] = Counter()  # batches under way, by trace
        self._mean: dict[Any, float] = {}  # seconds of a run, by trace
        self._left = 0
        for task in tasks:
            self._groups.setdefault(task.trace_key, deque()).append(task)
            self._left += 1

    def __len__(self) -> int:
        return self._left + len(self._alone)

    def take(self, after: Batch | None = None) -> Batch:
        """Return the next batch; for a worker that has a trace already, of the same if it can."""
        if self._alone:
            return Batch((self._alone.popleft(),), self._work, self._limit)
        key = after.tasks[0].trace_key if after else None
        if not self._groups.get(key):
            key = min(self._groups, key=lambda k: self._active[k])
        self._active[key] += 1
        tasks: list[Task] = []
        most = self._size(key)
        while self._left and len(tasks) < most:
            if key not in self._groups:  # this trace has no more runs: take another's
                key = next(iter(self._groups))
            tasks.append(self._groups[key].popleft())
            self._left -= 1
            if not self._groups[key]:
                del self._groups[key]
        return Batch(tuple(tasks), self._work, self._limit)

    def _size(self, key: Any) -> int:
        """Return how many runs make a batch."""
        share = max(1, self._left // (2 * self._workers))  # the last batches end at about one time
        known = self._mean.get(key) or max(self._mean.values(), default=0.0)
        wanted = max(SECONDS, SECONDS_PER_WORKER * self._workers)
        size = int(wanted / known) if known else FIRST
        return max(1, min(size, share, MOST))

    def done(self, batch: Batch, seconds: float | None = None) -> None:
        """Note that a batch has ended, and how long it took."""
        key = batch.tasks[0].trace_key
        self._active[key] -= 1
        if seconds is not None:
            now = seconds / len(batch.tasks)
            self._mean[key] = (now + self._mean.get(key, now)) / 2

    def again(self, tasks: Sequence[Task]) -> None:
        """Put tasks back, to be done alone: one of them may end its worker."""
        self._alone.extend(tasks)

    def drop(self, names: Container[str]) -> list[Task]:
        """Remove and return the tasks of these names: another sweep has done them."""
        dropped: list[Task] = []
        for key in list(self._groups):
            kept: deque[Task] = deque()
            for task in self._groups[key]:
                (dropped if task.name in names else kept).append(task)
            self._groups[key] = kept
            if not kept:
                del self._groups[key]
        self._left -= len(dropped)
        return dropped
