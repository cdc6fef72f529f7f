"""Worker processes on this machine: one that ends is replaced, and its batch is given back.

A pool of our own, not loky's: where one of its workers is killed, loky 3 fails every run that is
under way (7 of 20 in a trial) and takes no more, and its workers outlive a parent that is killed.
Users' code is not packed by cloudpickle: a worker must run the file that the run's key names.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from typing import Any

from tidegate.experiments.sweeps.batches import Batch
from tidegate.experiments.sweeps.executors import BatchExecutor, Lost, Outcome, perform_packed
from tidegate.experiments.sweeps.packed import Packed
from tidegate.experiments.sweeps.worker_process import READY, serve

PATIENCE = 0.6  # seconds in which a worker that is stopped may write what it has


class Processes(BatchExecutor):
    """So many processes; each is started when there is a batch for it."""

    def __init__(self, workers: int | None = None):
        self.workers = workers or len(os.sched_getaffinity(0))  # fewer than all under taskset
        # spawned, not forked: polars and Numba have threads, and a fork copies their locks
        self._context = multiprocessing.get_context("spawn")
        self._processes: dict[Connection, Any] = {}
        self._busy: dict[Connection, Batch] = {}
        self._begun: set[Connection] = set()  # past their imports

    def submit(self, batch: Batch) -> None:
        free = (c for c in self._processes if c not in self._busy)
        connection = next(free, None) or self._start()
        self._busy[connection] = batch
        with suppress(ConnectionError):  # it ended; wait() says how
            connection.send(Packed(batch))

    def wait(self, seconds: float) -> list[tuple[Batch, Outcome]]:
        found: list[tuple[Batch, Outcome]] = []
        for ready in wait_for(self._busy, seconds):
            assert isinstance(ready, Connection)
            batch = self._busy[ready]
            try:
                answer = ready.recv()
            except (EOFError, OSError, pickle.UnpicklingError):
                answer = Lost(self._bury(ready, batch.limit), begun=ready in self._begun)
            if answer == READY:
                self._begun.add(ready)
            else:
                del self._busy[ready]
                found.append((batch, answer))
        return found

    def stop(self) -> None:
        processes = list(self._processes.values())
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + PATIENCE
        for process in processes:
            process.join(max(0.0, deadline - time.monotonic()))
            process.kill()  # nothing to one that has ended
            process.join()
        for connection in self._processes:
            connection.close()
        self._processes.clear()
        self._busy.clear()
        self._begun.clear()

    def _start(self) -> Connection:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=serve, args=(theirs, os.getpid()), daemon=True)
        with _hidden_main(), _safe_path():
            process.start()
        theirs.close()
        self._processes[ours] = process
        with suppress(ConnectionError):  # it ended already; wait() says how
            ours.send(perform_packed)
        return ours

    def _bury(self, connection: Connection, limit: float | None) -> str:
        """Forget a process that ended, and return why it did."""
        process = self._processes.pop(connection)
        connection.close()
        process.join()
        if process.exitcode == -signal.SIGALRM and limit is not None:
            return f"it took longer than the limit of {limit:g} s"
        if process.exitcode == -signal.SIGKILL:
            return "its process was killed, as happens where memory runs out"
        if process.exitcode < 0:
            return f"its process ended by {signal.Signals(-process.exitcode).name}"
        return f"its process ended with code {process.exitcode}"


class KeptProcesses(Processes):
    """Processes that stay for the next grid, with their traces, unless one is cut short."""

    def stop(self) -> None:
        if self._busy:
            self.close()

    def close(self) -> None:
        """End all of them."""
        super().stop()


@contextmanager
def _safe_path() -> Iterator[None]:
    """Keep the working folder out of the paths of a process that starts, as ``-P`` does."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


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
