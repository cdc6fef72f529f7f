"""Grids: many runs on any ``concurrent.futures`` executor, returned in the order given."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, ProcessPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from tidegate.errors import TidegateError
from tidegate.experiments.runs import Run
from tidegate.experiments.specification import RunSpec, check_whole
from tidegate.experiments.travelling import Arrived, CannotTravel, Travelling
from tidegate.interrupts import end_with_parent, ignore_interrupts

T = TypeVar("T")
R = TypeVar("R")

MOST_WORKERS = 1024
SERIAL_BELOW = 8  # starting a worker process takes longer than a few runs
POLL = 0.2  # seconds: an endless wait may miss Ctrl-C if another thread gets the signal


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
        if not isinstance(spec, RunSpec):
            raise TidegateError(
                "run_grid needs RunSpecs, such as [tidegate.RunSpec('matmul', near='1GiB')], "
                f"got {spec!r}"
            )
    if workers is not None and executor is not None:
        raise TidegateError("workers and executor were both given; an executor has its own workers")
    check_whole("workers", workers, 1, MOST_WORKERS)
    answer = partial(RunSpec.answer, cache=cache)
    workers = _workers(workers, grid)
    return spread(answer, grid, workers=workers, executor=executor, progress=progress)


def attempt_grid(
    specs: Sequence[RunSpec],
    *,
    workers: int | None = None,
    cache: bool = True,
    progress: Callable[[RunSpec], None] = lambda spec: None,
) -> list[Run | TidegateError]:
    """Run every specification; one that fails gives its error and does not stop the others."""
    attempt = partial(_attempt, cache=cache)
    return spread(attempt, specs, workers=_workers(workers, specs), progress=progress)


def _attempt(spec: RunSpec, cache: bool) -> Run | TidegateError:
    try:
        return spec.answer(cache)
    except TidegateError as error:
        return error


def _workers(given: int | None, grid: Sequence[RunSpec]) -> int | None:
    return 1 if given is None and len(grid) < SERIAL_BELOW else given


def spread(
    work: Callable[[T], R],
    parts: Sequence[T],
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[T], None] = lambda part: None,
) -> list[R]:
    """Do ``work`` on every part, on several processes; return the results in order.

    A part that cannot be sent to a worker as it is here is done in this process: if the script
    itself (or a notebook) defines its classes, or if they were changed since they were imported.
    """
    if executor is not None:
        return _on(executor, work, parts, progress)
    workers = workers or os.cpu_count() or 1
    if workers == 1:
        results = []
        for part in parts:
            results.append(work(part))
            progress(part)
        return results
    # spawned, not forked: polars and Numba have threads, and a fork copies their locks
    context = multiprocessing.get_context("spawn")
    start = partial(start_worker, os.getpid())
    with ProcessPoolExecutor(workers, mp_context=context, initializer=start) as pool:
        travelling = [Travelling(part) for part in parts]
        sent = _on(pool, partial(_travelled, work), travelling, lambda t: progress(t.arrive()))
    pairs = zip(parts, sent, strict=True)
    return [work(part) if isinstance(r, NotSent) else r for part, r in pairs]


def start_worker(parent: int) -> None:
    """Leave Ctrl-C to the parent, and standard output, too: what users' classes print goes to
    standard error. End when the parent ends.
    """
    ignore_interrupts()
    end_with_parent(parent)
    os.dup2(2, 1)


def _on(
    executor: Executor, work: Callable[[T], R], parts: Sequence[T], progress: Callable[[T], None]
) -> list[R]:
    with _hidden_main():
        futures = {executor.submit(work, part): part for part in parts}
    try:
        waiting = set(futures)
        while waiting:
            done, waiting = wait(waiting, timeout=POLL, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
                progress(futures[future])
    except BaseException:
        # stop the workers at once, or Ctrl-C would wait for runs that are no longer needed
        workers = list((getattr(executor, "_processes", None) or {}).values())
        executor.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.terminate()
        raise
    return [future.result() for future in futures]


@contextmanager
def _hidden_main() -> Iterator[None]:
    """Hide the script from spawned workers, which would import it and start workers again."""
    main = sys.modules["__main__"]
    hidden = {name: getattr(main, name) for name in ("__file__", "__spec__") if hasattr(main, name)}
    main.__dict__.pop("__file__", None)
    main.__spec__ = None
    try:
        yield
    finally:
        vars(main).update(hidden)


class NotSent:
    """In place of the result of a part that the parent has to do."""


def _travelled(work: Callable[[T], R], part: Travelling | Arrived) -> R | NotSent:
    try:
        arrived = part.arrive()
    except CannotTravel:
        return NotSent()
    return work(arrived)
