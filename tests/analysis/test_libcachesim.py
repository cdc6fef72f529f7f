"""Oracle: LRU, FIFO, CLOCK, Belady, ARC, 2Q and S3-FIFO equal libCacheSim, miss for miss."""

import numpy as np
import pytest

from tidegate.analysis import (
    arc_misses,
    belady_misses,
    clock_misses,
    fifo_misses,
    lru_misses,
    s3_fifo_misses,
    two_q_misses,
)

pytestmark = pytest.mark.oracle

lcs = pytest.importorskip("libcachesim", reason="libcachesim is the oracle; install tidegate[dev]")

# libCacheSim's oracleGeneral format, packed, which it reads without Python; next is -1 if there is
# none
RECORD = np.dtype([("time", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")])
OURS = {
    "LRU": lru_misses,
    "FIFO": fifo_misses,
    "Clock": clock_misses,
    "Belady": belady_misses,
    "ARC": arc_misses,
    "TwoQ": two_q_misses,
    "S3FIFO": s3_fifo_misses,
}
# frames below which libCacheSim's queues hold nothing, and it always misses
LEAST = {"TwoQ": 4, "S3FIFO": 20}


def reader_of(ids, path):
    order = np.argsort(ids, kind="stable")
    again = ids[order[1:]] == ids[order[:-1]]
    records = np.zeros(len(ids), RECORD)
    records["id"], records["size"], records["next"] = ids, 1, -1
    records["next"][order[:-1][again]] = order[1:][again]
    records.tofile(path)
    return lcs.TraceReader(str(path), lcs.TraceType.ORACLE_GENERAL_TRACE)


@pytest.fixture(scope="module")
def readers(id_sequences, tmp_path_factory):
    folder = tmp_path_factory.mktemp("oracle")
    return {
        name: reader_of(ids, folder / f"{name}.oracleGeneral") for name, ids in id_sequences.items()
    }


@pytest.mark.parametrize("policy", OURS)
@pytest.mark.parametrize("name", ["zipf", "uniform", "cyclic", "runs"])
def test_misses_equal_libcachesim(policy, name, id_sequences, readers):
    ids = id_sequences[name]
    distinct = len(np.unique(ids))
    for capacity in (1, 2, 63, distinct // 3, 2 * distinct // 3, distinct - 1, distinct):
        if capacity < LEAST.get(policy, 1):
            continue
        cache = getattr(lcs, policy)(cache_size=capacity, hashpower=12)
        ratio, _ = cache.process_trace(readers[name])
        assert OURS[policy](ids, capacity) == round(ratio * len(ids)), (
            f"{policy}, {name}, {capacity} frames"
        )
