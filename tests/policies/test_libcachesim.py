"""Oracle: with one slot, no prefetch and page = region, misses equal libCacheSim's, request for
request.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tidegate.experiments import RunSpec
from tidegate.trace import Launch, Provenance, Trace, blocks_of, lay_out
from traces import FLAT, machine

pytestmark = pytest.mark.oracle

lcs = pytest.importorskip("libcachesim", reason="libcachesim is the oracle; install tidegate[dev]")

# libCacheSim's oracleGeneral format, packed, which it reads without Python; next is -1 if there is
# none
RECORD = np.dtype([("time", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")])
THEIRS = {"lru-ideal": "LRU", "fifo": "FIFO", "clock": "Clock", "belady": "Belady"}
REQUESTS = 20_000


class Requests(Trace):
    """A request is a page; blocks of seven and launches of half of them make no difference to one
    slot.
    """

    name, provenance, geometry = "requests", Provenance.ASSUMED, FLAT

    def __init__(self, ids):
        self.ids = ids
        self.objects = lay_out({"a": (int(ids.max()) + 1) * FLAT.page}, FLAT)

    def launches(self):
        for half in np.array_split(self.ids, 2):
            yield Launch(
                "requests", [blocks_of(7, part, bytes=64) for part in np.array_split(half, 3)]
            )

    def identity(self):
        return {"ids": self.ids.tolist()}


def sequences() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    shares = np.cumsum(1 / np.arange(1, 1501) ** 0.9)
    zipf = rng.permutation(1500)[np.searchsorted(shares, rng.random(REQUESTS) * shares[-1])]
    uniform = rng.integers(0, 600, REQUESTS)
    return {
        "zipf": zipf,
        "uniform": uniform,
        "cyclic": np.arange(REQUESTS) % 500,
        "repeated": np.repeat(uniform[: REQUESTS // 5], 5),
        "phases": np.concatenate(
            [zipf[: REQUESTS // 2] // 3, 900 + np.arange(REQUESTS // 2) % 150]
        ),
    }


SEQUENCES = sequences()


def their_misses(policy: str, ids: np.ndarray, frames: int, folder: Path) -> int:
    order = np.argsort(ids, kind="stable")
    again = ids[order[1:]] == ids[order[:-1]]
    records = np.zeros(len(ids), RECORD)
    records["id"], records["size"], records["next"] = ids, 1, -1
    records["next"][order[:-1][again]] = order[1:][again]
    records.tofile(folder / "requests.oracleGeneral")
    reader = lcs.TraceReader(
        str(folder / "requests.oracleGeneral"), lcs.TraceType.ORACLE_GENERAL_TRACE
    )
    ratio, _ = getattr(lcs, THEIRS[policy])(cache_size=frames, hashpower=12).process_trace(reader)
    return round(ratio * len(ids))


@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.parametrize("policy", THEIRS)
def test_misses_equal_libcachesim(policy, name, tmp_path):
    ids = SEQUENCES[name].astype(np.int64)
    distinct = len(np.unique(ids))
    for frames in (1, 2, 31, distinct // 3, distinct - 1, distinct):
        spec = RunSpec(
            Requests(ids),
            machine=machine(),
            near=frames * FLAT.region,
            eviction=policy,
            prefetch="none",
        )
        run = spec.run(cache=False)
        assert run.counts["faults"] == their_misses(policy, ids, frames, tmp_path), (
            f"{frames} frames"
        )
        assert run.counts["hits"] == len(ids) - run.counts["faults"]
        assert run.counts["evictions"] == max(0, run.counts["faults"] - frames)
