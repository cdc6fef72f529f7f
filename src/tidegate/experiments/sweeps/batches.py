"""Batches: runs that one worker does at a time, and what becomes of each.

    Task: a specification in its place  ──▶  Batch  ──▶  worker: perform  ──▶  Done: an outcome each

A run that raises is tried twice; then its outcome is ``Failed``. The ``Work`` says what a run's
answer is, and whether it is written somewhere.
"""

from __future__ import annotations

import functools
import pickle
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from tidegate.errors import TidegateError
from tidegate.experiments.specification import RunSpec
from tidegate.experiments.trace_cache import shared_traces

TRIES = 2  # of a run that raises, or that is alone when its worker ends


@dataclass(frozen=True)
class Task:
    """One run of a sweep: its place, what it is made from, its name and its settings as text."""

    index: int
    spec: Any  # a RunSpec, or anything with ``run(cache)``
    name: str = ""
    settings: str = ""

    @property
    def trace_key(self) -> Any:
        """Equal for runs with the same trace."""
        return getattr(self.spec, "trace_key", None)


@dataclass(frozen=True)
class Failed:
    """In place of an answer: why there is none, and the error if there was one."""

    reason: str
    error: Exception | None = None


class Work(ABC):
    """What is done for each run of a batch, and with all of them at its end."""

    shares_traces: bool = True

    @abstractmethod
    def run(self, task: Task) -> Any:
        """Run one task."""

    def finish(self, tasks: Sequence[Task], answers: list[Any]) -> list[Any]:
        """Return the outcomes that are sent back; also called with a part of an ended batch."""
        return answers

    def recover(self, tasks: Sequence[Task]) -> list[Any] | None:
        """Return the outcomes of a batch that was lost, if they can be found all the same."""
        return None


@dataclass(frozen=True)
class WholeRuns(Work):
    """Answer with whole runs, from the store of runs if they are there."""

    cache: bool = True
    shares_traces: bool = True

    def run(self, task: Task) -> Any:
        return task.spec.run(self.cache)


@dataclass(frozen=True)
class Done:
    """The outcomes of a batch, in order, and the seconds that it took."""

    outcomes: list[Any]
    seconds: float


@dataclass(frozen=True)
class Batch:
    """Some tasks for one worker; ``limit``: seconds that one run may take."""

    tasks: tuple[Task, ...]
    work: Work
    limit: float | None = None

    def perform(self) -> Done:
        """Do all tasks, here. If it is interrupted, what is done by then is finished."""
        began, answers = time.perf_counter(), list[Any]()
        with _in_turn, shared_traces() if self.work.shares_traces else nullcontext():
            if self.limit is not None:
                _load_compiled_code()
            try:
                for task in self.tasks:
                    with _limited(self.limit):
                        answers.append(_attempt(self.work, task))
            except BaseException:
                with _undisturbed():
                    self.work.finish(self.tasks[: len(answers)], answers)
                raise
            with _undisturbed():
                outcomes = self.work.finish(self.tasks, answers)
        return Done(outcomes, time.perf_counter() - began)


_in_turn = threading.RLock()  # one batch at a time: the timer belongs to the process


def _attempt(work: Work, task: Task) -> Any:
    failed: Failed | None = None
    for _ in range(TRIES):
        try:
            return work.run(task)
        except Exception as error:
            failed = Failed(one_line(error), _sendable(error))
    return failed


def _sendable(error: Exception) -> Exception | None:
    """Return an error if it can be sent between processes; users' classes may not allow it."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return None
    return error


def one_line(error: BaseException) -> str:
    """Return an error as one line."""
    text = (str(error).splitlines() or [""])[0]
    if isinstance(error, TidegateError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@functools.cache
def _load_compiled_code() -> None:
    """Make a very small run: what the first run of a process loads is not part of its time."""
    RunSpec("cyclic(bytes=4MiB)", near="2MiB").run_watched()


@contextmanager
def _limited(seconds: float | None) -> Iterator[None]:
    """Have the kernel end this process if the block takes longer.

    No exception can be raised in compiled code or in a C library, so the process ends.
    """
    if seconds is None:
        yield
        return
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let SIGTERM wait: what is being written is written."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
