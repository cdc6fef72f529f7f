"""A cluster started by its command lines: scheduler or client dies, and the sweep goes on."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from killed_sweeps import check_whole, start_client, tiny_runs, wait_for_rows
from tidegate import Sweep, TidegateError

pytestmark = pytest.mark.extra
distributed = pytest.importorskip("distributed", reason="needs tidegate[cluster]")


@contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli." + words[0], *words[1:]],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def scheduler(port: int) -> Iterator[subprocess.Popen[bytes]]:
    options = ("--host", "127.0.0.1", "--port", str(port), "--no-dashboard", "--no-show")
    with started("dask_scheduler", *options) as process:
        yield process


@contextmanager
def worker(address: str) -> Iterator[None]:
    """Workers without a nanny are one process each, which is killed with its test."""
    options = ("--nthreads", "1", "--host", "127.0.0.1", "--no-dashboard", "--no-nanny")
    with started("dask_worker", address, *options):
        yield


@contextmanager
def cluster(port: int, workers: int) -> Iterator[subprocess.Popen[bytes]]:
    """Start a scheduler and workers, and wait until all are there; yield the scheduler."""
    address = f"tcp://127.0.0.1:{port}"
    with ExitStack() as stack:
        leader = stack.enter_context(scheduler(port))
        for _ in range(workers):
            stack.enter_context(worker(address))
        with distributed.Client(address, timeout=120, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=120)
        yield leader


def free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


def test_scheduler_and_client_die_and_the_sweep_goes_on(tmp_path):
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    sweep = Sweep(tiny_runs(1200), tmp_path)
    with cluster(port, workers=2):
        client = start_client(str(tmp_path), 1200, on=address)
        wait_for_rows(sweep.place, 5, client)
        client.kill()
        client.communicate(timeout=300)
    with cluster(port, workers=2) as leader:
        client = start_client(str(tmp_path), 1200, on=address)
        before = len(sweep.results.known())
        wait_for_rows(sweep.place, before + 1, client)
        leader.kill()
        _, said = client.communicate(timeout=120)
        line = said.strip().splitlines()[-1]
        assert f"the scheduler at {address} is gone; what was done is in the store" in line
    with cluster(port, workers=1):
        swept = sweep.run(on=address)
        assert swept.there > 0
        assert swept.made == 1200 - swept.there
    check_whole(sweep)
    with pytest.raises(TidegateError, match="no Dask scheduler answers"):
        Sweep(tiny_runs(1201), tmp_path).run(on=address)
