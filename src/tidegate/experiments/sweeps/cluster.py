"""A Dask cluster: one that is there already, by its address or its client, or jobs of Slurm.

Workers need the same version of Tidegate, and nothing else: users' files travel with the batches.
"""

from __future__ import annotations

import logging
import queue
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tidegate.compiled.source_digest import code_digest
from tidegate.errors import TidegateError
from tidegate.experiments.store import NOT_HASHED, VERSIONS
from tidegate.experiments.sweeps.batches import Batch, one_line
from tidegate.experiments.sweeps.executors import BatchExecutor, Lost, Outcome, perform_packed
from tidegate.experiments.sweeps.packed import Packed, Unpacked
from tidegate.experiments.sweeps.processes import Processes
from tidegate.user_code.origins import version_of

CONNECT = 10  # seconds until a scheduler counts as unreachable
FIRST_WORKER = 30  # seconds until one has to be there
NO_WORKER = 120  # seconds without any until a sweep gives up; one that is replaced takes a few
QUEUED = 24 * 3600  # seconds that jobs may wait in Slurm's queue
_SCHEME = "slurm:"


@dataclass(frozen=True)
class Slurm:
    """Jobs of Slurm that are Dask workers: ``jobs`` of them, with ``cores`` processes each.

    >>> Slurm("gpu", jobs=40, cores=16).memory
    '32GiB'
    """

    queue: str
    jobs: int = 1
    cores: int = 1
    walltime: str = "04:00:00"

    @property
    def memory(self) -> str:
        """Of a job."""
        return f"{2 * self.cores}GiB"

    def cluster(self) -> Any:
        """Return the cluster; its jobs are submitted by ``scale``."""
        jobqueue, dask = _imported("dask_jobqueue"), _imported("dask")
        with dask.config.set({"distributed.scheduler.allowed-failures": 1}):  # tried twice
            return jobqueue.SLURMCluster(
                queue=self.queue,
                cores=self.cores,
                processes=self.cores,  # a run uses one core
                memory=self.memory,
                walltime=self.walltime,
            )


def check_cluster(on: Any, workers: int | None) -> None:
    """Refuse a cluster that cannot be, without a connection to it."""
    if on is not None and workers is not None:
        raise TidegateError("workers and on were both given; a cluster has its own workers")
    if isinstance(on, str) and not on.startswith(_SCHEME) and "://" not in on:
        raise TidegateError(
            f"on must be an address such as tcp://host:8786, or slurm:QUEUE, got {on}"
        )


def executor_on(on: Any, workers: int | None = None) -> BatchExecutor:
    """Return the executor for ``--on``: processes here if nothing is given."""
    check_cluster(on, workers)
    if on is None:
        return Processes(workers)
    if isinstance(on, str) and on.startswith(_SCHEME):
        on = Slurm(on.removeprefix(_SCHEME))
    distributed = _imported("distributed")
    if isinstance(on, Slurm):
        return _on_slurm(on, distributed)
    if isinstance(on, str):
        return Cluster(_connect(on, distributed), own=True)
    if not isinstance(on, distributed.Client):
        raise TidegateError(f"on must be an address or a distributed.Client, got {on!r}")
    return Cluster(on)


def _imported(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise TidegateError(
            f"clusters need {name.replace('_', '-')}; install tidegate[cluster]"
        ) from error


def _connect(address: str, distributed: Any) -> Any:
    # its threads would write tracebacks of every lost connection; the one line is ours
    logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)
    try:
        return distributed.Client(address, timeout=CONNECT, set_as_default=False)
    except (OSError, TimeoutError, ValueError, ImportError) as error:
        raise TidegateError(
            f"no Dask scheduler answers at {address} ({one_line(error)[:120]}); "
            "start one with 'dask scheduler', or correct the address"
        ) from error


def _on_slurm(slurm: Slurm, distributed: Any) -> BatchExecutor:
    logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)
    cluster = slurm.cluster()
    try:
        cluster.scale(jobs=slurm.jobs)
        client = distributed.Client(cluster, set_as_default=False)
        return Cluster(client, own=True, cluster=cluster, patience=QUEUED)
    except BaseException as error:
        cluster.close()
        if isinstance(error, Exception) and not isinstance(error, TidegateError):
            raise TidegateError(f"Slurm did not take the jobs: {one_line(error)}") from error
        raise


def about_here() -> tuple[str, str]:
    """Return Tidegate's version, and a hash of what can change results: its code and libraries."""
    return version_of("tidegate"), f"{code_digest(without=NOT_HASHED)} {VERSIONS}"


@dataclass(frozen=True)
class OtherVersion:
    """In place of an outcome: the worker has other code."""

    version: str


def perform_on_worker(
    batch: Packed | Unpacked, expected: tuple[str, str]
) -> Outcome | OtherVersion:
    """Do a batch on a worker of a cluster; a worker that joined late may have another version."""
    if about_here() != expected:
        return OtherVersion(about_here()[0])
    return perform_packed(batch)


class Cluster(BatchExecutor):
    """The workers of a Dask cluster; each is one core, so start them with one thread."""

    ahead = 2  # the next batch is at the worker when it has done one

    def __init__(
        self, client: Any, own: bool = False, cluster: Any = None, patience: float = FIRST_WORKER
    ):
        self._client, self._own, self._cluster = client, own, cluster
        self._futures: dict[Any, Batch] = {}
        self._count, self._counted = 1, 0.0
        self._most_alone, self._seen = max(patience, NO_WORKER), time.monotonic()
        self._ended: queue.Queue[Any] = queue.Queue()
        self._address = client.scheduler.address if client.scheduler else "the scheduler"
        try:
            self._check(patience)
        except BaseException:
            self.stop()
            raise

    @property
    def workers(self) -> int:  # type: ignore[override]
        """Workers that are there now: jobs come and go."""
        self._count_workers()
        return max(1, self._count)

    def _count_workers(self) -> None:
        if time.monotonic() <= self._counted + 1:
            return
        with suppress(Exception):  # the scheduler is gone; wait() says so
            self._count = len(self._client.scheduler_info(n_workers=-1)["workers"])
        self._counted = time.monotonic()
        if self._count:
            self._seen = self._counted

    def _check(self, patience: float) -> None:
        """Refuse a cluster without workers, or with other code than here."""
        try:
            self._client.wait_for_workers(1, timeout=patience)
        except TimeoutError as error:
            raise TidegateError(
                f"the cluster at {self._address} has no workers; start one with "
                f"'dask worker {self._address} --nthreads 1'"
            ) from error
        try:
            found = self._client.run(about_here, on_error="return")
            # a worker that ended meanwhile is no reason to refuse the cluster
            found = {w: said for w, said in found.items() if not isinstance(said, OSError)}
            if raised := next((e for e in found.values() if isinstance(e, Exception)), None):
                raise raised
        except Exception as error:
            raise TidegateError(
                f"workers of {self._address} cannot use Tidegate ({one_line(error)}); "
                f"install tidegate {version_of('tidegate')} there"
            ) from error
        for version, code in found.values():
            if (version, code) != about_here():
                raise _other(self._address, version)

    def submit(self, batch: Batch) -> None:
        future = self._client.submit(
            perform_on_worker,
            Packed(batch),
            about_here(),
            key=f"tidegate-batch-{uuid.uuid4().hex}",
            pure=False,
        )
        self._futures[future] = batch
        future.add_done_callback(self._ended.put)

    def wait(self, seconds: float) -> list[tuple[Batch, Outcome]]:
        found: list[tuple[Batch, Outcome]] = []
        try:
            ended = [self._ended.get(timeout=seconds)]
            while not self._ended.empty():
                ended.append(self._ended.get())
        except queue.Empty:
            ended = []
        self._check_scheduler()
        self._check_workers()
        for future in ended:
            batch = self._futures.pop(future)
            found.append((batch, self._outcome(future)))
        return found

    def _outcome(self, future: Any) -> Outcome:
        if future.status == "error":
            error = future.exception()
            killed = type(error).__name__ == "KilledWorker"
            reason = "its worker ended each time: out of memory, over the limit, or a crash"
            return Lost(reason if killed else one_line(error), final=killed)
        if future.status != "finished":
            return Lost(f"the cluster {future.status} it")
        try:
            outcome = future.result()
        except OSError as error:  # the connection broke while the answer was fetched
            raise self._gone() from error
        future.release()
        if isinstance(outcome, OtherVersion):
            raise _other(self._address, outcome.version)
        return outcome  # type: ignore[no-any-return]

    def _check_scheduler(self) -> None:
        if self._client.status not in ("running", "newly-created"):
            raise self._gone()

    def _check_workers(self) -> None:
        self._count_workers()
        if (alone := time.monotonic() - self._seen) > self._most_alone:
            raise TidegateError(
                f"the cluster at {self._address} has had no workers for {alone:.0f} s; start some, "
                "and run the same command again to go on: what was done is in the store"
            )

    def _gone(self) -> TidegateError:
        return TidegateError(
            f"the scheduler at {self._address} is gone; what was done is in the store, run the "
            "same command again to go on"
        )

    def stop(self) -> None:
        with suppress(Exception):
            if self._futures and self._client.status == "running":
                self._client.cancel(list(self._futures), force=True)
        self._futures.clear()
        if self._own:
            with suppress(Exception):
                self._client.close(timeout=1)
        if self._cluster is not None:
            with suppress(Exception):
                self._cluster.close(timeout=5)


def _other(address: str, version: str) -> TidegateError:
    ours = version_of("tidegate")
    same = " but other code or libraries" if version == ours else ""
    return TidegateError(
        f"the cluster at {address} has tidegate {version}{same}, here it is {ours}; "
        "install the same on both"
    )
