"""Grids: many runs, returned whole and in the order given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor

from tidegate.errors import TidegateError
from tidegate.experiments.runs import Run
from tidegate.experiments.settings import check_whole
from tidegate.experiments.specification import RunSpec
from tidegate.experiments.sweeps.batches import Failed, WholeRuns
from tidegate.experiments.sweeps.execution import run_all
from tidegate.experiments.sweeps.executors import BatchExecutor

MOST_WORKERS = 1024


def run_grid(
    specs: Iterable[RunSpec],
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    cache: bool = True,
    progress: Callable[[RunSpec], None] = lambda spec: None,
) -> list[Run]:
    """Run every specification. The runs are the same, bit for bit, on any number of workers.

    ``workers``: processes; by default one per core, or none for a small grid. ``executor``: one of
    your own, such as a Dask cluster's, in place of processes here.

    >>> from tidegate import RunSpec
    >>> specs = [RunSpec("cyclic(bytes=16MiB)", near=near, slots=1) for near in ("8MiB", "16MiB")]
    >>> [run.counts["evictions"] > 0 for run in run_grid(specs)]
    [True, False]
    """
    grid = list(specs)
    for spec in grid:
        check_spec(spec, "run_grid")
    if workers is not None and executor is not None:
        raise TidegateError("workers and executor were both given; an executor has its own workers")
    check_whole("workers", workers, 1, MOST_WORKERS)
    return run_all(
        grid,
        WholeRuns(cache),
        workers=workers,
        executor=executor,
        progress=progress,
        stop_at_failure=True,
    )


def check_spec(spec: object, user: str) -> None:
    """Refuse what is no specification of a run."""
    if not isinstance(spec, RunSpec):
        raise TidegateError(
            f"{user} needs RunSpecs, such as [tidegate.RunSpec('matmul', near='1GiB')], "
            f"got {spec!r}"
        )


def attempt_grid(
    specs: Sequence[RunSpec],
    *,
    workers: int | None = None,
    executor: BatchExecutor | None = None,
    cache: bool = True,
    progress: Callable[[RunSpec], None] = lambda spec: None,
) -> list[Run | TidegateError]:
    """Run every specification; one that fails gives its error and does not stop the others."""
    done = run_all(specs, WholeRuns(cache), workers=workers, executor=executor, progress=progress)
    return [_run_or_error(outcome) for outcome in done]


def _run_or_error(outcome: Run | Failed) -> Run | TidegateError:
    if isinstance(outcome, Run):
        return outcome
    if isinstance(outcome.error, TidegateError):
        return outcome.error
    raise outcome.error or TidegateError(outcome.reason)  # a defect of Tidegate
