"""Graph applications, against their kernels executed node by node in plain Python."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from papers.gmt.applications.python_kernels import Used, small
from tidegate.papers.gmt.applications.graphs import ENTRY, weight
from tidegate.trace.trace import Trace
from tidegate.workloads import workloads
from tidegate.workloads.graph import csr, start_node
from workloads.read_traces import read


class Plain:
    """A graph as lists, and the pages that nodes use when they read theirs."""

    def __init__(self, workload: Any, trace: Trace):
        self.graph, self.trace = workload.graph(), trace
        offsets, targets = csr(self.graph)
        self.offsets, self.targets = offsets.tolist(), targets.tolist()
        self.nodes, self.source = len(self.offsets) - 1, int(start_node(self.graph))

    def entries(self, v: int) -> range:
        return range(self.offsets[v], self.offsets[v + 1])

    def read(self, active: list[int]) -> Used:
        used = Used(self.trace)
        for v in active:
            for entry in self.entries(v):
                for o in self.trace.objects:
                    used.use(o.name, entry, size=ENTRY[o.name])
        return used

    def bfs(self) -> Iterator[list[int]]:
        level = {self.source: 0}
        now = 0
        while active := sorted(v for v, found in level.items() if found == now):
            yield active
            now += 1
            for v in active:
                for i in self.entries(v):
                    level.setdefault(self.targets[i], now)

    def sssp(self, heaviest: int) -> Iterator[list[int]]:
        new = [1 << 60] * self.nodes
        new[self.source] = 0
        active = [self.source]
        while active:
            yield active
            cost = list(new)
            for v in active:
                here = new[v]
                for i in self.entries(v):
                    new[self.targets[i]] = min(
                        new[self.targets[i]], here + int(weight(self.graph.key, i, heaviest))
                    )
            active = [v for v in range(self.nodes) if new[v] < cost[v]]
        assert new == self.dijkstra(heaviest)

    def dijkstra(self, heaviest: int) -> list[int]:
        cost, queue = [1 << 60] * self.nodes, [(0, self.source)]
        while queue:
            here, v = heapq.heappop(queue)
            if here < cost[v]:
                cost[v] = here
                for i in self.entries(v):
                    heapq.heappush(
                        queue, (here + int(weight(self.graph.key, i, heaviest)), self.targets[i])
                    )
        return cost

    def pagerank(self, rounds: int, tolerance: float) -> Iterator[list[int]]:
        one, alpha = np.float32(1), np.float32(0.85)
        length = [np.float32(max(1, len(self.entries(v)))) for v in range(self.nodes)]
        delta, residual = [(one - alpha) * alpha / n for n in length], [np.float32(0)] * self.nodes
        active = [v for v in range(self.nodes) if self.entries(v)]
        for _ in range(rounds):
            yield active
            for v in active:
                for i in self.entries(v):
                    residual[self.targets[i]] += delta[v]
            active = [v for v in range(self.nodes) if residual[v] > np.float32(tolerance)]
            if not active:
                return
            for v in active:
                delta[v], residual[v] = residual[v] * alpha / length[v], np.float32(0)


def check(trace: Trace, plain: Plain, rounds: Iterator[list[int]]) -> int:
    """Check that each launch reads the active nodes' lists, each page once; count them."""
    launches, expected = read(trace), list(rounds)
    assert len(launches) == len(expected)
    for launch, active in zip(launches, expected, strict=True):
        visits = [visit for block in launch.blocks() for visit in block]
        assert len({page for page, *_ in visits}) == len(visits), "each page once"
        assert {(page, write, reference) for page, write, _, reference in visits} == plain.read(
            active
        ).visits()
        for reference in range(len(trace.objects)):
            pages = [page for page, *_, r in visits if r == reference]
            assert pages == sorted(pages)
    return len(launches)


@pytest.mark.slow
@pytest.mark.parametrize("page", [256, 1024])
@pytest.mark.parametrize("seed", [1, 2])
def test_bfs(page: int, seed: int) -> None:
    workload, trace = small("gmt-BFS", page, bytes=40_000, degree=6, seed=seed)
    plain = Plain(workload, trace)
    assert check(trace, plain, plain.bfs()) > 3


@pytest.mark.parametrize("page", [256, 1024])
@pytest.mark.parametrize(("seed", "heaviest"), [(1, 255), (2, 3)])
def test_sssp(page: int, seed: int, heaviest: int) -> None:
    workload, trace = small("gmt-SSSP", page, bytes=60_000, degree=6, seed=seed, heaviest=heaviest)
    plain = Plain(workload, trace)
    assert check(trace, plain, plain.sssp(heaviest)) > 3


@pytest.mark.parametrize(("rounds", "tolerance"), [(4, 0.001), (500, 0.05)])
def test_pagerank(rounds: int, tolerance: float) -> None:
    workload, trace = small(
        "gmt-PageRank", bytes=40_000, degree=6, iterations=rounds, tolerance=tolerance
    )
    plain = Plain(workload, trace)
    launches = check(trace, plain, plain.pagerank(rounds, tolerance))
    assert launches == 4 if rounds == 4 else 4 < launches < 500


def test_weights_are_spread_evenly() -> None:
    key = workloads.find("gmt-SSSP")(bytes=10_000).graph().key
    drawn = np.bincount([weight(key, i, 4) for i in range(4000)], minlength=5)
    assert drawn[0] == 0
    assert (abs(drawn[1:] - 1000) < 120).all()


def test_bytes_are_those_of_the_lists() -> None:
    workload, trace = small("gmt-BFS", bytes=40_000, degree=6)
    plain = Plain(workload, trace)
    for launch, active in zip(read(trace), plain.bfs(), strict=True):
        assert launch.bytes.sum() == 8 * sum(len(plain.entries(v)) for v in active)
