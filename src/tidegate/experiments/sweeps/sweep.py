"""Sweep: many runs, the store of their figures, and where they are made.

Sweep ─▶ names ─▶ what the store lacks ─▶ execute on processes or a cluster ─▶ parts ─▶ table
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from tidegate.errors import TidegateError
from tidegate.experiments.grid import MOST_WORKERS, check_spec
from tidegate.experiments.runs import Run
from tidegate.experiments.settings import check_whole
from tidegate.experiments.specification import RunSpec
from tidegate.experiments.sweeps.batches import Failed, Task
from tidegate.experiments.sweeps.cluster import check_cluster, executor_on
from tidegate.experiments.sweeps.execution import execute
from tidegate.experiments.sweeps.executors import BatchExecutor
from tidegate.experiments.sweeps.expansion import expand_runs, look_up
from tidegate.experiments.sweeps.names import Names, anchored, settings_of
from tidegate.experiments.sweeps.parts import WHOLE, RowsOfRuns, SweepTables, run_of
from tidegate.experiments.sweeps.places import FileStore, place_of


@dataclass(frozen=True)
class Swept:
    """What came of a sweep: how many runs were made now, were there before, or failed."""

    runs: int
    made: int
    there: int
    seconds: float
    failures: list[tuple[str, str]]  # settings, reason

    @property
    def elsewhere(self) -> int:
        """Runs that another sweep made meanwhile."""
        return self.runs - self.made - self.there - len(self.failures)


class Sweep:
    """Many runs whose figures are kept in a store: a folder, or ``s3://bucket/prefix``.

    A run that the store has is not made again, whichever sweep made it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sweep = Sweep.over(folder, workload=["cyclic(bytes=16MiB)"], near=["8MiB", "16MiB"])
    ...     made = [sweep.run(workers=1).made for _ in range(2)]
    ...     rows = sweep.table().height
    >>> made, rows
    ([2, 0], 2)
    """

    def __init__(self, specs: Iterable[RunSpec], store: str | Path | FileStore):
        self.specs = list(specs)
        for spec in self.specs:
            check_spec(spec, "a sweep")
        if not self.specs:
            raise TidegateError("a sweep must have at least one run, got none")
        self.place = place_of(store)
        self.results = SweepTables(self.place)

    @classmethod
    def over(
        cls,
        store: str | Path | FileStore,
        *,
        run: Mapping[str, Any] | None = None,
        zips: Sequence[Mapping[str, Any]] = (),
        seeds: int | Sequence[int] = (),
        **axes: Sequence[Any],
    ) -> Sweep:
        """Return the sweep over every combination of the axes. ``run``: keywords that all runs
        share. ``zips``: lists of one length each, taken side by side. ``seeds``: repeats.
        """
        return cls(expand_runs(run or {}, axes, zips, seeds), store)

    @cached_property
    def names(self) -> list[str]:
        """The name of each run."""
        names = Names()
        return [names.name(spec) for spec in self.specs]

    @cached_property
    def tasks(self) -> list[Task]:
        """The runs, each once, as they are sent to workers."""
        known = dict[Any, Any]()
        each = dict(zip(reversed(self.names), reversed(self.specs), strict=True))
        return [
            Task(i, anchored(each[name], known), name, settings_of(each[name]))
            for i, name in enumerate(dict.fromkeys(self.names))
        ]

    def run(
        self,
        *,
        on: Any = None,
        workers: int | None = None,
        limit: float | None = None,
        whole: bool = False,
        detail: str = "",
        shares_traces: bool = True,
        progress: Callable[[int], None] = lambda runs: None,
    ) -> Swept:
        """Make what the store lacks; what failed before is tried again.

        ``on``: the address of a Dask scheduler, a ``distributed.Client`` or a ``Slurm``; without
        it, ``workers`` processes here, one per core by default. ``limit``: seconds that a run may
        take. ``whole``: keep whole runs with their timelines, for ``runs``. ``progress``: called
        with how many runs are done.
        """
        check_whole("workers", workers, 1, MOST_WORKERS)
        if limit is not None and not 0 < limit < 1e9:
            raise TidegateError(f"limit must be a number of seconds above 0, got {limit}")
        check_cluster(on, workers)  # before the store's folder is made
        began, tasks = time.monotonic(), self.tasks
        known = self.results.known()
        wanted = [task for task in tasks if task.name not in known]
        there = len(tasks) - len(wanted)
        progress(there)
        failures: list[tuple[str, str]] = []
        made = 0
        if wanted:
            self.place.check()
            look_up(self.specs)
            work = RowsOfRuns(self.place, WHOLE if whole else detail, shares_traces)
            for task, outcome in self._make(wanted, work, executor_on(on, workers), limit):
                made += outcome is None
                if isinstance(outcome, Failed):
                    failures.append((task.settings, outcome.reason))
                progress(1)
        return Swept(len(tasks), made, there, time.monotonic() - began, failures)

    def _make(
        self, wanted: list[Task], work: RowsOfRuns, executor: BatchExecutor, limit: float | None
    ) -> Iterator[tuple[Task, Any]]:
        """Yield every task with its outcome. Two sweeps at once begin at different places, so that
        they seldom meet.
        """
        turn = random.randrange(len(wanted))
        order = wanted[turn:] + wanted[:turn]
        elsewhere = self.results.known
        with closing(execute(order, work, executor, limit=limit, elsewhere=elsewhere)) as done:
            yield from done

    def status(self) -> tuple[int, int, int]:
        """Return how many runs the sweep has, how many are done, and how many failed."""
        names = {task.name for task in self.tasks}
        failed = names & set(self.results.failures()["run"])
        return len(names), len(names & self.results.known()), len(failed)

    def table(self) -> pl.DataFrame:
        """Return a row for each run of this sweep that is done, in its order."""
        return self._own(self.results.table()).drop("detail", strict=False)

    def failures(self) -> pl.DataFrame:
        """Return a row for each run that failed: settings and reason."""
        return self._own(self.results.failures())

    def runs(self) -> list[Run]:
        """Return the runs, which must have been kept whole, in the order of the sweep."""
        rows = self._own(self.results.table())
        if "detail" not in rows.columns or rows["detail"].null_count():
            raise TidegateError(
                f"{self.place} has figures only; run the sweep with whole=True and another store"
            )
        made = {row["run"]: run_of(row) for row in rows.iter_rows(named=True)}
        return [made[name] for name in self.names if name in made]

    def _own(self, rows: pl.DataFrame) -> pl.DataFrame:
        order = pl.DataFrame({"run": [task.name for task in self.tasks]})
        return order.join(rows, on="run", how="inner", maintain_order="left")
