from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import TidegateError
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Provenance, Trace
from tidegate.workloads import workloads
from tidegate.workloads.observuvm import btree
from tidegate.workloads.suites import GB
from workloads.read_traces import pages_of, program, read

INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1


@dataclass
class Node:
    leaf: bool
    keys: list[int] = field(default_factory=list)
    below: list[Any] = field(default_factory=list)  # children, or a leaf's records


def cut(length: int) -> int:
    return length // 2 if length % 2 == 0 else length // 2 + 1


def inserted(root: Node, key: int, order: int) -> Node:
    """Insert as b+tree.c does; the record of a key is its value, here the key itself."""
    way = [root]
    while not way[-1].leaf:
        node = way[-1]
        way.append(node.below[sum(key >= k for k in node.keys)])
    leaf = way.pop()
    at = sum(k < key for k in leaf.keys)
    leaf.keys.insert(at, key)
    leaf.below.insert(at, key)
    if len(leaf.keys) < order:
        return root
    split = cut(order - 1)
    right = Node(True, leaf.keys[split:], leaf.below[split:])
    leaf.keys, leaf.below = leaf.keys[:split], leaf.below[:split]
    left, up = leaf, right.keys[0]
    while way:
        parent = way.pop()
        at = next(i for i, child in enumerate(parent.below) if child is left)
        parent.keys.insert(at, up)
        parent.below.insert(at + 1, right)
        if len(parent.keys) < order:
            return root
        split = cut(order)
        up = parent.keys[split - 1]
        right = Node(False, parent.keys[split:], parent.below[split:])
        parent.keys, parent.below = parent.keys[: split - 1], parent.below[:split]
        left = parent
    return Node(False, [up], [left, right])


@dataclass
class Knode:
    keys: list[int]
    indices: list[int]


def transformed(root: Node, order: int) -> tuple[list[Knode], list[int], int]:
    """Return nodes by level, records in order, and the height: b+tree.c's transform_to_cuda."""
    knodes, records, queue, after = [], [], deque([root]), 1
    while queue:
        node = queue.popleft()
        indices = [0]
        if node.leaf:
            for record in node.below:
                indices.append(len(records))
                records.append(record)
        else:
            indices = list(range(after, after + len(node.below)))
            after += len(node.below)
            queue.extend(node.below)
        keys = [INT_MIN, *node.keys, *[INT_MAX] * (order - len(node.keys))]
        knodes.append(Knode(keys, indices))
    height = 0
    while not root.leaf:
        root = root.below[0]
        height += 1
    return knodes, records, height


class FindK:
    """findK in plain Python, thread after thread, and the pages that a block uses, in order."""

    def __init__(
        self, trace: Trace, knodes: list[Knode], records: list[int], height: int, order: int
    ):
        self.knodes, self.records, self.height, self.order = knodes, records, height, order
        self.page, self.objects = trace.geometry.page, {o.name: o for o in trace.objects}

    def use(self, name: str, at: int, size: int, write: bool = False) -> None:
        owner = self.objects[name]
        for number in range(at // self.page, (at + size - 1) // self.page + 1):
            low, high = max(at, number * self.page), min(at + size, (number + 1) * self.page)
            within = min(self.page, owner.bytes - number * self.page)
            key = owner.first_page + number, btree.ARRAYS.index(name)
            used, written = self.uses.get(key, (0, 0))
            self.uses[key] = min(within, used + max(32, high - low)), written | write

    def node(self, number: int, name: str, first: int, count: int) -> None:
        """Use a range of a node's indices or keys."""
        size = 4 + 8 * (self.order + 1) + 8
        self.use(
            "knodes",
            size * number + 4 + (0 if name == "indices" else 4 * (self.order + 1)) + 4 * first,
            4 * count,
        )

    def block(self, bid: int, key: int) -> tuple[list[tuple[int, int, int, int]], int]:
        """Return the touches of block ``bid``, and its answer."""
        self.uses: dict[tuple[int, int], tuple[int, int]] = {}
        curr = 0
        self.use("currKnode", 8 * bid, 8, self.height > 0)
        self.use("keys", 4 * bid, 4)
        for _ in range(self.height):
            node = self.knodes[curr]
            self.node(curr, "keys", 0, self.order)
            (thid,) = (t for t in range(self.order) if node.keys[t] <= key < node.keys[t + 1])
            self.use("offset", 8 * bid, 8, True)
            self.node(curr, "indices", thid, 1)
            curr = node.indices[thid]
        node = self.knodes[curr]
        self.node(curr, "keys", 0, self.order)
        (thid,) = (t for t in range(self.order) if node.keys[t] == key)
        self.node(curr, "indices", thid, 1)
        self.use("records", 4 * node.indices[thid], 4)
        self.use("ans", 4 * bid, 4, True)
        touches = [(page, write, used, array) for (page, array), (used, write) in self.uses.items()]
        return touches, self.records[node.indices[thid]]


def queried(trace: Trace) -> list[list[int]]:
    """Return the keys that each launch looks up."""
    work = trace.workload  # type: ignore[attr-defined]
    tree, count = work.tree(), work._count(work.tree())
    parts = enumerate(range(0, count, work.batch))
    return [
        btree._queried_keys(
            tree, None, btree.generator(work.seed, 1 + b), min(work.batch, count - f)
        ).tolist()
        for b, f in parts
    ]


def check_walks(keys: int, order: int, page: int, batch: int) -> None:
    work = workloads.find("BTR")(order=order, batch=batch, queries="100%")
    size = sum(work._sizes(work._grown(keys)).values())
    trace = program(
        "BTR", Geometry(page, 2 * page), bytes=size, order=order, batch=batch, queries="100%"
    )
    root = Node(True)
    for key in range(keys):
        root = inserted(root, key, order)
    knodes, records, height = transformed(root, order)
    tree = trace.workload.tree()  # type: ignore[attr-defined]
    assert (tree.keys, sum(tree.levels), len(tree.levels)) == (keys, len(knodes), height + 1)
    plain = FindK(trace, knodes, records, height, order)
    launches, queries = read(trace), queried(trace)
    assert len(launches) == len(queries)
    for launch, some in zip(launches, queries, strict=True):
        for bid, (block, key) in enumerate(zip(launch.blocks(), some, strict=True)):
            expected, answer = plain.block(bid, key)
            assert answer == key
            assert block == expected


@pytest.mark.parametrize("keys", [1, 3, 4, 5, 9, 100, 257])
def test_walks_are_those_of_the_kernel_on_the_tree_rodinia_builds(keys: int) -> None:
    check_walks(keys, order=4, page=64, batch=1000)


def test_rodinias_order() -> None:
    check_walks(700, order=256, page=4096, batch=1000)


@settings(max_examples=30, deadline=None)
@given(
    keys=st.integers(1, 300),
    order=st.integers(3, 12),
    page=st.integers(5, 12).map((1).__lshift__),
    batch=st.integers(1, 400),
)
def test_any_tree_and_page(keys: int, order: int, page: int, batch: int) -> None:
    check_walks(keys, order, page, batch)


@settings(max_examples=100, deadline=None)
@given(keys=st.integers(1, 10**9), order=st.integers(3, 300), fill=st.floats(0.5, 1))
def test_no_node_has_too_much_or_too_little(keys: int, order: int, fill: float) -> None:
    tree = workloads.find("BTR")(order=order, fill=fill)._grown(keys)
    assert tree.levels[0] == 1
    items = [*tree.levels[1:], keys]
    for level, (nodes, held) in enumerate(zip(tree.levels, items, strict=True)):
        each, most = (tree.leaf, order - 1) if level == len(items) - 1 else (tree.inner, order)
        last = held - (nodes - 1) * each
        assert each <= most
        assert 1 <= last <= most
        assert nodes == 1 or last > most - each


def test_the_root_is_hottest_and_every_query_ends_at_a_record() -> None:
    trace = program("BTR", bytes="100MB")
    (launch,) = read(trace)
    queries = len(launch.starts) - 1
    root = trace.objects[1].first_page
    assert np.count_nonzero(launch.page == root) == queries
    assert np.count_nonzero(launch.reference == 0) == queries
    assert (launch.write == np.isin(launch.reference, [2, 3, 5])).all()
    assert trace.provenance is Provenance.DERIVED


def test_queries_come_in_batches() -> None:
    trace = program("BTR", bytes="50MB", queries="2%", batch=10_000)
    blocks = [len(launch.starts) - 1 for launch in read(trace)]
    keys = trace.workload.tree().keys  # type: ignore[attr-defined]
    assert blocks == [10_000] * (int(0.02 * keys) // 10_000) + [int(0.02 * keys) % 10_000]
    assert [o.bytes for o in trace.objects[2:]] == [80_000, 80_000, 40_000, 40_000]


def test_uniform_queries_reach_all_pages_of_leaves_and_records() -> None:
    trace = program("BTR", bytes="50MB", queries="10%")
    page = np.concatenate([launch.page for launch in read(trace)])
    assert set(page.tolist()) >= pages_of(trace, "records", "knodes")


def test_zipf_makes_some_leaves_hot() -> None:
    shares = []
    for skew in (0, 1):
        trace = program("BTR", bytes="100MB", queries="5%", skew=skew)
        page = np.concatenate([launch.page[launch.reference == 0] for launch in read(trace)])
        times = np.sort(np.bincount(page - trace.objects[0].first_page))[::-1]
        shares.append(times[: len(times) // 20].sum() / times.sum())
    assert shares[0] < 0.08
    assert shares[1] > 0.2


@settings(max_examples=20, deadline=None)
@given(keys=st.integers(1, 2000), order=st.integers(3, 20))
def test_zipf_asks_for_keys_that_exist(keys: int, order: int) -> None:
    tree = workloads.find("BTR")(order=order)._grown(keys)
    found = btree._queried_keys(
        tree, btree.Zipf(tree.levels[-1], 0.5, 1), np.random.default_rng(1), 5000
    )
    assert found.min() >= 0
    assert found.max() < keys


def test_shuffled_nodes_are_used_as_often_elsewhere() -> None:
    by_level, shuffled = (
        read(program("BTR", bytes="100MB", placement=p))[0] for p in ("levels", "shuffled")
    )
    first = program("BTR", bytes="100MB").objects[1].first_page
    nodes = [launch.page[launch.reference == 1] - first for launch in (by_level, shuffled)]
    np.testing.assert_array_equal(
        by_level.page[by_level.reference == 0], shuffled.page[shuffled.reference == 0]
    )
    hottest = [np.argsort(np.bincount(n))[::-1][:3] for n in nodes]
    assert hottest[0].max() <= 9  # the inner nodes
    assert hottest[1].max() > 100


def test_the_papers_size() -> None:
    work = workloads.find("BTR")()
    assert sum(work.sizes().values()) == pytest.approx(5 * GB, rel=0.01)
    assert work.tree().node == 2068  # sizeof(knode)
    assert len(work.tree().levels) == 4


def test_refuses_nonsense() -> None:
    for wrong in (
        {"order": 2},
        {"queries": 0},
        {"batch": 0},
        {"skew": -1},
        {"fill": 0.4},
        {"fill": 1.1},
    ):
        with pytest.raises(TidegateError, match="must be at"):
            program("BTR", **wrong)
    with pytest.raises(TidegateError, match="must be one of"):
        program("BTR", placement="sorted")
