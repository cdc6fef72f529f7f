from __future__ import annotations

from bisect import bisect_right, insort

import numpy as np
import pytest

from tidegate.errors import TidegateError
from tidegate.papers.observuvm.applications.btree import pairs_after_random_insertions
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Provenance
from tidegate.workloads import workloads
from tidegate.workloads.suites import GB
from workloads.read_traces import pages_of, program, read


def test_the_papers_size_is_exactly_the_pool_the_queries_and_the_results() -> None:
    work = workloads.find("BTR")()
    assert work.sizes() == {"pool": 4 * GB, "queries": GB // 2, "results": GB // 2}
    assert (work.nodes, work.queries) == (2**25, 2**27)
    leaves, *inner = work.levels()
    pairs = pairs_after_random_insertions()
    assert leaves == round(250_000_000 / pairs)
    assert [round(leaves / pairs**i) for i in (1, 2, 3)] == inner[:3]
    assert work.levels()[-1] == 1
    assert sum(work.levels()) < work.nodes  # the pool is not full


@pytest.mark.parametrize(("kept", "moved"), [(8, 7), (2, 1), (2, 2)])
def test_nodes_fill_as_random_insertions_fill_them(kept: int, moved: int) -> None:
    """The rule itself, on one level of leaves: a full leaf splits when a key comes to it."""
    draw = np.random.default_rng(1)
    leaves, least = [[0.0]], [0.0]  # a leaf's keys, and the least of each
    for key in draw.random(30_000):
        at = bisect_right(least, key) - 1
        if len(leaves[at]) == kept + moved:
            leaves.insert(at + 1, leaves[at][kept:])
            least.insert(at + 1, leaves[at + 1][0])
            del leaves[at][kept:]
            at += key >= least[at + 1]
        insort(leaves[at], float(key))
    expected = pairs_after_random_insertions(kept, moved)
    assert 30_000 / len(leaves) == pytest.approx(expected, rel=0.01)


def test_a_lookup_reads_one_node_of_each_level() -> None:
    work = workloads.find("BTR")(bytes="50MB")
    tree = work.tree(1 << 16)
    assert tree.reads.sum() == pytest.approx(len(tree.levels))
    # the root's page is read by all
    assert tree.reads.max() >= 1


def test_waves_read_queries_then_the_pool_and_write_results() -> None:
    trace = program("BTR", bytes="50MB", wave=2, lanes=4)
    (launch,) = read(trace)
    pool, queries, results = trace.objects
    lookups = trace.workload.queries  # type: ignore[attr-defined]
    assert (launch.write == (launch.reference == 2)).all()
    for site, owner in ((0, queries), (2, results)):  # each query and result once, in order
        pages = launch.page[launch.reference == site]
        assert launch.bytes[launch.reference == site].sum() == owner.bytes
        assert set(pages.tolist()) == pages_of(trace, owner.name)
    # what a list's look-ups read of a page, no more than the page
    tree = trace.workload.tree(Geometry().page)  # type: ignore[attr-defined]
    read_of = np.minimum(128 * 1024 * 2 * 8 * tree.reads, Geometry().page).sum()
    whole = lookups // (1024 * 2 * 8)
    pool_bytes = launch.bytes[launch.reference == 1].sum()
    assert read_of * whole <= pool_bytes * 1.01
    assert pool_bytes <= read_of * (whole + 1) * 1.01
    assert launch.width == 4  # 16 slots for 4 lanes
    assert trace.provenance is Provenance.DERIVED
    assert pool.name == "pool"


def test_every_wave_reaches_the_whole_tree_in_another_order() -> None:
    trace = program("BTR", bytes="50MB", lanes=1, merge=1)
    (launch,) = read(trace)
    first, second = ([p for p, _, _, site in b if site == 1] for b in launch.blocks()[:2])
    assert sorted(first) == sorted(second)
    assert first != second
    nodes = sum(trace.workload.levels())  # type: ignore[attr-defined]
    assert len(first) == -(-128 * nodes // Geometry().page)


def test_small_waves_reach_a_part_of_it() -> None:
    trace = program("BTR", Geometry(4096, 65536), bytes="500MB", wave=1, merge=1)
    segment = next(iter(next(iter(trace.launches())).segments))
    pool = np.count_nonzero(segment.reference[segment.starts[0] : segment.starts[8]] == 1)
    nodes = sum(trace.workload.levels())  # type: ignore[attr-defined]
    assert 0 < pool < 128 * nodes / 4096


@pytest.mark.parametrize("wrong", [{"fill": 0.4}, {"fill": 1.1}, {"seed": -1}, {"wave": 0}])
def test_refuses_nonsense(wrong: dict[str, float]) -> None:
    with pytest.raises(TidegateError, match="must be at"):
        program("BTR", **wrong)
