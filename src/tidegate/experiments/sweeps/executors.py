"""Executors: where batches run. This file has the interface, and the simplest one: here.

submit(batch) … wait(seconds) ──▶ [(batch, Done | Lost | NotPacked)] … stop()
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass

from tidegate.errors import TidegateError
from tidegate.experiments.sweeps.batches import Batch, Done
from tidegate.experiments.sweeps.packed import CannotUnpack, Packed, Unpacked
from tidegate.experiments.trace_cache import forget_traces


@dataclass(frozen=True)
class Lost:
    """A batch whose worker ended. ``final``: the executor has tried it again itself. ``begun``:
    the worker was past its own start, so the batch may be to blame.
    """

    reason: str
    final: bool = False
    begun: bool = True


class NotPacked:
    """In place of the outcome of a batch that would differ in a worker; it is run here instead."""


Outcome = Done | Lost | NotPacked


class BatchExecutor(ABC):
    """Runs batches, several at a time."""

    workers: int = 1
    ahead: int = 1  # batches that a worker has in hand

    @abstractmethod
    def submit(self, batch: Batch) -> None:
        """Begin a batch; at most ``workers`` × ``ahead`` are under way."""

    @abstractmethod
    def wait(self, seconds: float) -> list[tuple[Batch, Outcome]]:
        """Return what has ended; wait so long for the first."""

    @abstractmethod
    def stop(self) -> None:
        """End at once, whatever is under way."""


class Here(BatchExecutor):
    """This process: for a few runs, starting others takes longer."""

    def __init__(self) -> None:
        self._waiting: list[Batch] = []

    def submit(self, batch: Batch) -> None:
        self._waiting.append(batch)

    def wait(self, seconds: float) -> list[tuple[Batch, Outcome]]:
        batch = self._waiting.pop(0)
        return [(batch, batch.perform())]

    def stop(self) -> None:
        forget_traces()


class Futures(BatchExecutor):
    """The caller's own ``concurrent.futures`` executor, which stays open."""

    ahead = 2

    def __init__(self, executor: Executor):
        self._executor = executor
        self._batches: dict[Future[Done | NotPacked], Batch] = {}
        self.workers = getattr(executor, "_max_workers", 8)

    def submit(self, batch: Batch) -> None:
        self._batches[self._executor.submit(perform_packed, Packed(batch))] = batch

    def wait(self, seconds: float) -> list[tuple[Batch, Outcome]]:
        done, _ = wait(self._batches, timeout=seconds, return_when=FIRST_COMPLETED)
        try:
            return [(self._batches.pop(future), future.result()) for future in done]
        except BrokenExecutor as error:
            raise TidegateError(f"the executor that was given broke: {error}") from error

    def stop(self) -> None:
        for future in self._batches:
            future.cancel()


def perform_packed(batch: Packed | Unpacked) -> Done | NotPacked:
    """Do a batch in a worker."""
    try:
        unpacked: Batch = batch.unpack()
    except CannotUnpack:
        return NotPacked()
    return unpacked.perform()
