from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import TidegateError
from tidegate.papers.observuvm.applications import bfs
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Provenance, Trace
from tidegate.workloads import workloads
from tidegate.workloads.graph import csr, start_node
from tidegate.workloads.suites import GB
from workloads.read_traces import Read, in_order, pages_of, program, read

Use = dict[tuple[str, int, int], int]  # array, page within it, whether stored → bytes

STEPS = {
    "Kernel": (
        ("graph_mask", 0),
        ("graph_mask", 1),
        ("graph_nodes", 0),
        ("graph_edges", 0),
        ("graph_visited", 0),
        ("cost", 0),
        ("cost", 1),
        ("updating_graph_mask", 1),
    ),
    "Kernel2": (
        ("updating_graph_mask", 0),
        ("graph_mask", 1),
        ("graph_visited", 1),
        ("updating_graph_mask", 1),
    ),
}


class Plain:
    """bfs.cu in plain Python, thread after thread, and what the threads of each wave use."""

    def __init__(self, trace: Trace, source: int, offsets: np.ndarray, targets: np.ndarray):
        self.page, self.size = trace.geometry.page, {o.name: o.bytes for o in trace.objects}
        self.offsets, self.targets = offsets.tolist(), targets.tolist()
        self.n = len(offsets) - 1
        self.mask, self.updating, self.visited = ([False] * self.n for _ in range(3))
        self.cost = [-1] * self.n
        self.mask[source] = self.visited[source] = True
        self.cost[source] = 0
        self.over = False
        self.uses: Use = {}

    def use(self, name: str, at: int, used: int, write: int = 0) -> None:
        key = name, at // self.page, write
        self.uses[key] = self.uses.get(key, 0) + used

    def kernel(self, tid: int) -> None:
        self.use("graph_mask", tid, 1)
        if not self.mask[tid]:
            return
        self.mask[tid] = False
        self.use("graph_mask", tid, 1, 1)
        self.use("graph_nodes", 8 * tid, 8)
        found = False
        for i in range(self.offsets[tid], self.offsets[tid + 1]):
            self.use("graph_edges", 4 * i, 4)
            other = self.targets[i]
            self.use("graph_visited", other, 32)
            if not self.visited[other]:
                if not found:  # once: it stays in a register
                    self.use("cost", 4 * tid, 4)
                found = True
                self.cost[other] = self.cost[tid] + 1
                self.use("cost", 4 * other, 32, 1)
                self.updating[other] = True
                self.use("updating_graph_mask", other, 32, 1)

    def kernel2(self, tid: int) -> None:
        self.use("updating_graph_mask", tid, 1)
        if self.updating[tid]:
            self.mask[tid] = self.visited[tid] = self.over = True
            self.updating[tid] = False
            self.use("graph_mask", tid, 1, 1)
            self.use("graph_visited", tid, 1, 1)
            self.use("updating_graph_mask", tid, 1, 1)

    def launch(self, kernel: Any, wave: int) -> list[Use]:
        """Return what each wave uses."""
        found = []
        for first in range(0, self.n, wave):
            self.uses = {}
            for tid in range(first, min(first + wave, self.n)):
                kernel(tid)
            found.append(
                {
                    (name, page, write): min(used, self.page, self.size[name] - page * self.page)
                    for (name, page, write), used in self.uses.items()
                }
            )
        return found


def check(trace: Trace, launch: Read, waves: list[Use], lanes: int) -> None:
    first = {o.name: o.first_page for o in trace.objects}
    name_of = [o.name for o in trace.objects]
    blocks = launch.blocks()
    for uses in waves:
        expected = {
            (first[name] + page, write, used, bfs.ARRAYS.index(name))
            for (name, page, write), used in uses.items()
        }
        mine, blocks = blocks[: min(lanes, len(expected))], blocks[min(lanes, len(expected)) :]
        touches = in_order(mine)
        assert len(touches) == len(expected), "each page once, or loaded and stored"
        assert set(touches) == expected
        steps = [
            STEPS[launch.name].index((name_of[reference], write))
            for _, write, _, reference in touches
        ]
        assert steps == sorted(steps)
        for step, wanted in enumerate(STEPS[launch.name]):
            pages = [page for (page, *_), s in zip(touches, steps, strict=True) if s == step]
            assert pages == [first[n] + page for n, page, w in uses if (n, w) == wanted], (
                "in the order of the threads"
            )
    assert not blocks


def check_search(page: int, **options: Any) -> None:
    work = workloads.find("BFS")(**options)
    trace = work.trace(Geometry(page, 4 * page))
    graph = work.made()
    source, (offsets, targets) = int(start_node(graph)), csr(graph)
    assert offsets[-1] * 4 == work.sizes()["graph_edges"]
    plain = Plain(trace, source, offsets, targets)
    together = max(1, page // 4096)
    lanes = min(options.get("lanes", 16), together)
    launches = iter(read(trace))
    plain.over = True
    while plain.over:
        plain.over = False
        one, two = next(launches), next(launches)
        assert (one.name, one.width, two.name, two.width) == (
            "Kernel",
            together // lanes,
            "Kernel2",
            together,
        )
        check(trace, one, plain.launch(plain.kernel, 512 * together), lanes)
        check(trace, two, plain.launch(plain.kernel2, 512 * together), 1)
    assert next(launches, None) is None
    assert plain.cost == distances(source, offsets.tolist(), targets.tolist())


def distances(source: int, offsets: list[int], targets: list[int]) -> list[int]:
    """Return the costs of a textbook breadth-first search, with a queue."""
    found = [-1] * (len(offsets) - 1)
    found[source] = 0
    queue = deque([source])
    while queue:
        v = queue.popleft()
        for other in targets[offsets[v] : offsets[v + 1]]:
            if found[other] < 0:
                found[other] = found[v] + 1
                queue.append(other)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("graph", ["uniform", "kronecker"])
@pytest.mark.parametrize("page", [64, 4096, 65536])
def test_pages_are_those_of_the_kernels_thread_by_thread(page: int, graph: str) -> None:
    check_search(page, bytes=125 * 1500, graph=graph)
    check_search(page, bytes=39 * 3000, degree=6, graph=graph, seed=5)


@pytest.mark.slow
def test_many_thread_blocks_to_a_wave() -> None:
    check_search(65536, bytes=39 * 20_000, degree=6)
    check_search(65536, bytes=39 * 20_000, degree=6, lanes=3)


@settings(max_examples=20, deadline=None)
@given(
    nodes=st.integers(1, 1200),
    degree=st.floats(2, 12),
    page=st.integers(5, 14).map((1).__lshift__),
    graph=st.sampled_from(["uniform", "kronecker"]),
    seed=st.integers(0, 9),
)
def test_any_graph_and_page(nodes: int, degree: float, page: int, graph: str, seed: int) -> None:
    check_search(
        page, bytes=int(nodes * (15 + 4 * degree)) + 1, degree=degree, graph=graph, seed=seed
    )


@pytest.mark.parametrize("graph", ["uniform", "kronecker"])
def test_costs_are_distances(graph: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []
    begin = bfs._begin
    monkeypatch.setattr(bfs, "_begin", lambda *given: begun.append(begin(*given)) or begun[-1])
    work = workloads.find("BFS")(bytes="2MB", graph=graph)
    launches = read(work.trace())
    (search,) = begun
    offsets, targets = csr(work.made())
    found = distances(int(np.flatnonzero(search.cost == 0)[0]), offsets.tolist(), targets.tolist())
    assert search.cost.tolist() == found
    assert len(launches) == 2 * (max(found) + 1)
    assert not search.mask.any()
    assert not search.updating.any()
    np.testing.assert_array_equal(search.visited, np.array(found) >= 0)


def test_all_pages_are_used_and_nodes_and_edges_are_only_read() -> None:
    trace = program("BFS", bytes="20MB")
    launches = read(trace)
    page, write, reference = (
        np.concatenate([getattr(r, c) for r in launches]) for c in ("page", "write", "reference")
    )
    for number, name in enumerate(bfs.ARRAYS):
        assert set(page[reference == number].tolist()) == pages_of(trace, name)
        assert write[reference == number].any() == (name not in ("graph_nodes", "graph_edges"))
    assert trace.provenance is Provenance.DERIVED


def test_the_papers_size() -> None:
    work = workloads.find("BFS")()
    assert sum(work.sizes().values()) == pytest.approx(2.1 * GB, rel=0.01)
    assert work.nodes == pytest.approx(1 << 24, rel=0.01)
    eighth = workloads.find("BFS")(bytes=round(2.1 * GB / 8))
    assert [8 * size for size in eighth.sizes().values()] == pytest.approx(
        list(work.sizes().values()), rel=0.001
    )


def test_rodinias_own_degree_takes_a_third() -> None:
    assert sum(workloads.find("BFS")(bytes=39 << 24, degree=6).sizes().values()) == pytest.approx(
        0.654e9, rel=0.01
    )


def test_refuses_nonsense() -> None:
    for wrong in ({"degree": 1}, {"lanes": 0}, {"seed": -1}):
        with pytest.raises(TidegateError, match="must be at least"):
            program("BFS", **wrong)
    with pytest.raises(TidegateError, match="must be one of"):
        program("BFS", graph="star")
