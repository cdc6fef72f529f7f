"""Grids: many runs, on any ``concurrent.futures`` executor, answered in the order in which they
were asked for.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, ProcessPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from tidegate.errors import TidegateError
from tidegate.experiments.runs import Run
from tidegate.experiments.specification import RunSpec

T = TypeVar("T")
R = TypeVar("R")

SERIAL_BELOW = 8  # starting a worker process takes longer than a few runs
BLINK = 0.2  # seconds: a wait without end may not notice Ctrl-C if another thread gets the signal


def run_grid(
    asks: Iterable[RunSpec],
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    cache: bool = True,
    progress: Callable[[RunSpec], None] = lambda ask: None,
) -> list[Run]:
    """Answer every ask. The runs are the same, bit for bit, on any number of workers.

    ``workers``: processes; by default one per core, or none for a small grid. ``executor``: one of
    your own, such as a Dask cluster's, in place of processes here.

    >>> from tidegate import RunSpec
    >>> runs = run_grid(RunSpec("cyclic(bytes=16MiB)", near=near, slots=1) for near in ("8MiB", "16MiB"))
    >>> [r.counts["evictions"] > 0 for r in runs]
    [True, False]
    """
    asked = list(asks)
    for ask in asked:
        if not isinstance(ask, RunSpec):
            raise TidegateError(
                f"{ask!r} is no RunSpec; expected a list of them, such as [tidegate.RunSpec('matmul', near='1GiB')]"
            )
    if workers is None and len(asked) < SERIAL_BELOW:
        workers = 1
    return spread(
        partial(_answer, cache=cache), asked, workers=workers, executor=executor, progress=progress
    )


def spread(
    work: Callable[[T], R],
    parts: Sequence[T],
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[T], None] = lambda part: None,
) -> list[R]:
    """Do ``work`` on every part, on several processes, and answer in the order of the parts.

    A part with a policy or workload whose class the script itself (or a notebook) defines keeps all
    of them here: workers do not import the script.
    """
    if executor is not None:
        return _on(executor, work, parts, progress)
    workers = workers or os.cpu_count() or 1
    if workers == 1 or any(map(_of_the_script, parts)):
        answers = []
        for part in parts:
            answers.append(work(part))
            progress(part)
        return answers
    # spawned, not forked: polars and Numba have threads, and a fork copies their locks
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=_leave_ctrl_c_to_the_parent
    ) as pool:
        return _on(pool, work, parts, progress)


def _on(
    executor: Executor, work: Callable[[T], R], parts: Sequence[T], progress: Callable[[T], None]
) -> list[R]:
    with _hidden_main():
        futures = {executor.submit(work, part): part for part in parts}
    try:
        waiting = set(futures)
        while waiting:
            done, waiting = wait(waiting, timeout=BLINK, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
                progress(futures[future])
    except BaseException:
        # stop the workers at once, or Ctrl-C would wait for runs that nobody wants any more
        workers = list((getattr(executor, "_processes", None) or {}).values())
        executor.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.terminate()
        raise
    return [future.result() for future in futures]


@contextmanager
def _hidden_main() -> Iterator[None]:
    """A spawned worker imports the script that started it, which would start workers again; an ask
    needs no script.
    """
    main = sys.modules["__main__"]
    hidden = {name: getattr(main, name) for name in ("__file__", "__spec__") if hasattr(main, name)}
    main.__dict__.pop("__file__", None)
    main.__spec__ = None
    try:
        yield
    finally:
        vars(main).update(hidden)


def _of_the_script(part: Any) -> bool:
    held = vars(part).values() if dataclasses.is_dataclass(part) else ()
    return any((v if isinstance(v, type) else type(v)).__module__ == "__main__" for v in held)


def _leave_ctrl_c_to_the_parent() -> None:
    """A terminal interrupts the workers too; the parent stops them, and they have nothing to add."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _answer(ask: RunSpec, cache: bool) -> Run:
    return ask.answer(cache)
