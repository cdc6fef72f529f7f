"""How does it compare with libCacheSim's LRU on the same flat trace?

20 M requests by Zipf's law (0.9) for 163,840 objects, two thirds of which fit. Three ways to the
same misses: libCacheSim (reading its binary trace from a file that is in the page cache, its hash
table sized for the objects), the mechanism with one slot and one page per region, and
``analysis.lru_misses``, which counts misses and nothing else.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.in_memory import InMemory
from benchmarks.row import Row
from benchmarks.timing import best_of
from tidegate import RunSpec
from tidegate.analysis import lru_misses
from tidegate.workload import Geometry, blocks_of
from tidegate.workloads.random_pages import Zipf, generator

REQUESTS, OBJECTS = 20_000_000, 163_840
CAPACITY = 2 * OBJECTS // 3
SEGMENT = 1 << 20
TIMES = 5  # times libCacheSim's requests per second
HASHPOWERS = (17, 18)  # log2 of the objects; the better of the two counts
REPETITIONS = 3

# libCacheSim's oracleGeneral
RECORD = np.dtype([("time", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")])


def flat_lru() -> list[Row]:
    try:
        import libcachesim
    except ImportError:
        return [
            Row(
                "flat LRU",
                float("nan"),
                "M requests/s",
                "libcachesim is not installed; pip install 'tidegate[dev]'",
            )
        ]
    ids = Zipf(OBJECTS, 0.9, seed=1).draw(generator(1, 1), REQUESTS)
    with tempfile.TemporaryDirectory() as folder:
        peer, misses = _libcachesim(libcachesim, ids, Path(folder) / "zipf.oracleGeneral")
    rows = [Row("flat LRU: libCacheSim", peer, "M requests/s", f"{misses:,} misses; the peer")]

    def row(what: str, seconds: float, found: int) -> Row:
        assert found == misses, f"{what} has {found} misses, libCacheSim {misses}"
        rate = REQUESTS / seconds / 1e6
        return Row(
            f"flat LRU: {what}",
            rate / peer,
            "× libCacheSim",
            f"{rate:.1f} M requests/s, same misses",
            TIMES,
            True,
        )

    whole = best_of(REPETITIONS, lambda s: s.run() or int(s.books["faults"][0]), _spec(ids).prepare)
    alone = best_of(REPETITIONS, lambda _: lru_misses(ids, CAPACITY))
    return [
        *rows,
        row("the mechanism, lru-ideal", whole.cpu, whole.result),
        row("lru_misses", alone.cpu, alone.result),
    ]


def _spec(ids: Any) -> RunSpec:
    page = 64 * 1024
    segments = [
        blocks_of(16, ids[first : first + SEGMENT], bytes=page)
        for first in range(0, len(ids), SEGMENT)
    ]
    trace = InMemory(OBJECTS, [segments], Geometry(page, page))
    return RunSpec(trace, eviction="lru-ideal", prefetch="none", near=CAPACITY * page, slots=1)


def _libcachesim(libcachesim: Any, ids: Any, path: Path) -> tuple[float, int]:
    """Return its best rate in M requests per second, and its misses."""
    records = np.zeros(len(ids), RECORD)
    records["id"], records["size"], records["next"] = ids, 1, -1
    records.tofile(path)
    reader = libcachesim.TraceReader(str(path), libcachesim.TraceType.ORACLE_GENERAL_TRACE)
    timings = [
        best_of(
            REPETITIONS,
            lambda cache: cache.process_trace(reader)[0],
            lambda power=power: libcachesim.LRU(cache_size=CAPACITY, hashpower=power),
        )
        for power in HASHPOWERS
    ]
    return REQUESTS / min(t.cpu for t in timings) / 1e6, round(timings[0].result * len(ids))
