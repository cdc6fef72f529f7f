"""What does a run cost in a sweep, and does anything get lost when processes are killed?

``sweep_runs``: 10,000 tiny runs on two workers. ``sweep_traces``: a graph at full size under nine
systems makes its trace once. ``sweep_batches``: what a batch costs a Dask cluster. ``sweep_kills``:
500 runs on processes, on Dask and into object storage (moto), while workers are killed.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.row import Row
from tidegate import RunSpec, Sweep
from tidegate.experiments.sweeps.batches import Batch, Task, Work
from tidegate.experiments.sweeps.cluster import Cluster
from tidegate.papers.observuvm.setup import SYSTEMS

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from killed_sweeps import killing, names_in, own_workers, tiny_runs

RUNS, KILLED_RUNS, KILLS, BATCHES = 10_000, 500, 8, 300


def sweep_runs() -> list[Row]:
    """10,000 tiny runs; the compiled code is loaded before, by a sweep of a few."""
    with tempfile.TemporaryDirectory() as folder:
        Sweep(tiny_runs(4), f"{folder}/first").run(workers=1)
        sweep = Sweep(tiny_runs(RUNS), f"{folder}/runs")
        planning = _cpu(resource.RUSAGE_SELF)
        assert len(sweep.tasks) == RUNS
        planning = _cpu(resource.RUSAGE_SELF) - planning
        own, workers, began = _cpu(resource.RUSAGE_SELF), _cpu(resource.RUSAGE_CHILDREN), _now()
        swept = sweep.run(workers=2)
        seconds = _now() - began
        client = _cpu(resource.RUSAGE_SELF) - own + planning
        spent = _cpu(resource.RUSAGE_CHILDREN) - workers
        assert (swept.made, swept.failures) == (RUNS, [])
        size = sum(f.stat().st_size for f in Path(folder, "runs", "parts").iterdir())
        files = len(list(Path(folder, "runs", "parts").iterdir()))
        again = _now()
        assert Sweep(tiny_runs(RUNS), f"{folder}/runs").run().made == 0
        again = _now() - again
    return [
        Row(
            "sweep: tiny runs per core-second",
            RUNS / spent,
            "runs",
            f"{RUNS:,} on 2 workers in {seconds:.0f} s, starting them counted",
            200,
            True,
        ),
        Row("sweep: processor time of the client", 1e3 * client / RUNS, "ms a run", "", 0.3),
        Row("sweep: … of which naming and planning", 1e3 * planning / RUNS, "ms a run", ""),
        Row("sweep: size of the store", size / RUNS, "bytes a run", f"{files} parts"),
        Row("sweep: resuming when all is done", 1e3 * again / RUNS, "ms a run", "naming included"),
    ]


def sweep_traces() -> list[Row]:
    """BFS at full size under nine systems, with an empty cache of traces."""
    with tempfile.TemporaryDirectory() as folder, _traces_in(folder):
        specs = [RunSpec("BFS", system=system) for system in SYSTEMS]
        before, began = _cpu(resource.RUSAGE_CHILDREN), _now()
        assert Sweep(specs, f"{folder}/store").run(workers=2).made == len(specs)
        spent, seconds = _cpu(resource.RUSAGE_CHILDREN) - before, _now() - began
        made = len(list(Path(folder, "traces").glob("*.columns")))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    about = f"{len(specs)} systems in {seconds:.0f} s; making the trace anew costs 15 s each"
    return [
        Row("sweep: BFS under nine systems, processor time", spent, "s", about, 60),
        Row("sweep: … files of traces", made, "", "made once", 1),
        Row("sweep: … largest worker", peak, "GB", "it makes the graph", 2),
    ]


class Nothing(Work):
    """Work that takes no time: what is left is the cost of handing it out."""

    shares_traces = False

    def run(self, task: Task) -> int:
        return 0


def sweep_batches() -> list[Row]:
    """What a batch costs the client and the scheduler of a Dask cluster."""
    rows = []
    with _dask() as client:
        for size in (1, 100):
            executor = Cluster(client)
            tasks = [Task(i, None, f"{i:032}") for i in range(size)]
            began, own = _now(), _cpu(resource.RUSAGE_SELF)
            for _ in range(BATCHES):
                executor.submit(Batch(tuple(tasks), Nothing()))
            left = BATCHES
            while left:
                left -= len(executor.wait(1.0))
            spent, seconds = _cpu(resource.RUSAGE_SELF) - own, _now() - began
            about = f"client and scheduler together; {BATCHES} in {seconds:.1f} s"
            rows.append(
                Row(f"sweep: a batch of {size} on Dask", 1e3 * spent / BATCHES, "ms", about)
            )
    return rows


def sweep_kills() -> list[Row]:
    """500 runs while workers are killed, on every executor and store that is installed."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        rows.append(_killed("processes", f"{folder}/a", None, lambda: own_workers))
        if importlib.util.find_spec("distributed"):
            with _dask() as client:
                rows.append(_killed("Dask", f"{folder}/b", client, lambda: _pids(client)))
    if importlib.util.find_spec("moto") and importlib.util.find_spec("obstore"):
        with _bucket() as url:
            rows.append(_killed("processes, s3://", url, None, lambda: own_workers))
    return rows


def _killed(where: str, store: str, on: Any, finder: Callable[[], Callable[[], Any]]) -> Row:
    sweep = Sweep(tiny_runs(KILLED_RUNS), store)
    began = _now()
    with killing(finder(), times=KILLS) as killed:
        swept = sweep.run(on=on, workers=None if on else 2)
    assert swept.failures == []
    twice = len(names_in(sweep.place)) - len(set(names_in(sweep.place)))
    lost = KILLED_RUNS - len(set(names_in(sweep.place)))
    about = f"{KILLED_RUNS} runs in {_now() - began:.0f} s, {len(killed)} workers killed"
    return Row(f"sweep: runs lost or twice, {where}", lost + twice, "runs", about, 0)


@contextmanager
def _dask() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    options: Any = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(host="127.0.0.1", **options) as cluster, Client(cluster) as client:
        yield client


def _pids(client: Any) -> Callable[[], list[int]]:
    """Return a function that finds Dask's workers, also those that were restarted."""
    nannies = client.cluster.workers.values()
    return lambda: [nanny.pid for nanny in nannies if nanny.pid]


@contextmanager
def _bucket() -> Iterator[str]:
    import urllib.request

    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    os.environ |= {"AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_REGION": "us-east-1", **keys}
    made = urllib.request.Request(f"http://{host}:{port}/results", method="PUT")
    urllib.request.urlopen(made)
    yield "s3://results/kills"
    server.stop()


@contextmanager
def _traces_in(folder: str) -> Iterator[None]:
    """Use a cache folder with the compiled code of the usual one, but without traces."""
    from tidegate.files import cache_folder

    Path(folder, "compiled").symlink_to((cache_folder() / "compiled").absolute())
    before = os.environ.get("TIDEGATE_CACHE")
    os.environ["TIDEGATE_CACHE"] = folder
    try:
        yield
    finally:
        os.environ.pop("TIDEGATE_CACHE") if before is None else os.environ.update(
            TIDEGATE_CACHE=before
        )


def _cpu(whose: int) -> float:
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime


def _now() -> float:
    return time.perf_counter()


SWEEPS: tuple[Callable[[], list[Row]], ...] = (sweep_runs, sweep_traces, sweep_batches, sweep_kills)
