from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidegate.errors import TidegateError
from tidegate.workloads.graph import (
    Graph,
    _key,
    csr,
    degree,
    kronecker,
    largest_degree,
    neighbours,
    random_below,
    random_bits,
    uniform,
)

M64 = (1 << 64) - 1
BUILDERS = {"uniform": uniform, "kronecker": kronecker}
sizes = {"nodes": st.integers(1, 300), "edges": st.integers(1, 900), "seed": st.integers(0, 5)}


def splitmix(key: int, k: int) -> int:
    """Return the k-th output of SplitMix64, in Python's own numbers."""
    x = (key + k * 0x9E3779B97F4A7C15) & M64
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & M64
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & M64
    return x ^ x >> 31


def rmat(nodes: int, edges: int, key: int) -> list[tuple[int, int]]:
    """Return the edges of a Kronecker graph by the recipe: quarters by level, scattered, folded."""
    scale = (nodes - 1).bit_length()
    scatter = [splitmix(key, k) | 1 for k in (-1, -2)]

    def place(x: int) -> int:
        for odd in scatter:
            x = x * odd % (1 << scale)
            x ^= x >> (scale + 1) // 2
        return x * nodes >> scale

    found = []
    for edge in range(edges):
        u = v = 0
        for level in range(scale):
            r = splitmix(key, 8 * edge + level // 4) >> 16 * (level % 4) & 0xFFFF
            quarter = sum(r >= round(65536 * share) for share in (0.57, 0.76, 0.95))
            u, v = 2 * u + quarter // 2, 2 * v + quarter % 2
        found.append((place(u), place(v)))
    return found


def lists_of(graph: Graph) -> list[list[int]]:
    offsets, targets = csr(graph)
    return [targets[a:b].tolist() for a, b in pairwise(offsets)]


def test_random_numbers_are_splitmix() -> None:
    assert splitmix(1234567, 1) == 6457827717110365317  # the published first output for this seed
    for key in (0, 1, M64):
        for k in (-2, -1, 0, 1, 1 << 40):
            assert int(random_bits(np.uint64(key), k)) == splitmix(key, k)
            assert random_below(1000, np.uint64(key), k) == (splitmix(key, k) >> 32) * 1000 >> 32


@settings(max_examples=60, deadline=None)
@given(**sizes)
def test_uniform_is_rodinias_generator(nodes: int, edges: int, seed: int) -> None:
    """graphgen.cpp: each node in turn appends its draws, and itself to the lists of these."""
    expected: list[list[int]] = [[] for _ in range(nodes)]
    for v in range(nodes):
        loops = []
        for edge in range(v * edges // nodes, (v + 1) * edges // nodes):
            drawn = (splitmix(int(_key(seed)), edge) >> 32) * nodes >> 32
            expected[v].append(drawn)
            (loops if drawn == v else expected[drawn]).append(v)
        expected[v] += loops  # the one place where the order differs: loops come last, not at once
    assert lists_of(uniform(nodes, edges, seed)) == expected


@settings(max_examples=60, deadline=None)
@given(**sizes)
def test_kronecker_is_rmat(nodes: int, edges: int, seed: int) -> None:
    expected: list[list[int]] = [[] for _ in range(nodes)]
    for u, v in rmat(nodes, edges, int(_key(seed))):
        expected[u].append(v)
        expected[v].append(u)
    found = lists_of(kronecker(nodes, edges, seed))
    assert [sorted(one) for one in found] == [sorted(one) for one in expected]


@pytest.mark.parametrize("kind", BUILDERS)
@settings(max_examples=25, deadline=None)
@given(**sizes)
@example(nodes=65_536, edges=70_000, seed=1)  # lists are sorted in buckets of so many nodes
@example(nodes=150_000, edges=400_000, seed=1)
def test_every_edge_is_in_both_lists(kind: str, nodes: int, edges: int, seed: int) -> None:
    graph = BUILDERS[kind](nodes, edges, seed)
    offsets, targets = csr(graph)
    assert offsets[0] == 0
    assert offsets[-1] == len(targets) == 2 * edges
    assert targets.min() >= 0
    assert targets.max() < nodes
    owners = np.repeat(np.arange(nodes), np.diff(offsets))
    there, back = owners * nodes + targets, targets.astype(np.int64) * nodes + owners
    np.testing.assert_array_equal(np.sort(there), np.sort(back))
    for v in (0, nodes // 2, nodes - 1):
        into = np.empty(largest_degree(graph), np.int32)
        n = neighbours(graph, v, into)
        assert n == degree(graph, v)
        np.testing.assert_array_equal(into[:n], targets[offsets[v] : offsets[v + 1]])


def test_degrees_are_a_constant_and_a_poisson_variable() -> None:
    degrees = np.diff(csr(uniform(200_000, 600_000, 7))[0])
    assert degrees.min() == 3
    assert degrees.mean() == 6
    assert degrees.var() == pytest.approx(3, rel=0.02)


def test_few_nodes_of_a_kronecker_graph_have_most_edges() -> None:
    for kind, low, high in (("uniform", 0.01, 0.03), ("kronecker", 0.3, 0.9)):
        degrees = np.sort(np.diff(csr(BUILDERS[kind](1 << 16, 1 << 20, 3))[0]))[::-1]
        assert low < degrees[: len(degrees) // 100].sum() / degrees.sum() < high, kind


def test_hubs_are_not_neighbours() -> None:
    degrees = np.diff(csr(kronecker(100_000, 1_000_000, 3))[0])
    hubs = np.sort(np.argsort(degrees)[-100:])
    assert np.median(np.diff(hubs)) > 100_000 / 100 / 3


@pytest.mark.parametrize("kind", BUILDERS)
def test_the_seed_decides(kind: str) -> None:
    once, again, other = (BUILDERS[kind].__wrapped__(500, 2000, seed) for seed in (4, 4, 5))
    np.testing.assert_array_equal(once.stored, again.stored)
    assert (once.stored != other.stored).mean() > 0.5


@pytest.mark.parametrize("kind", BUILDERS)
def test_too_large_a_graph_is_refused(kind: str) -> None:
    with pytest.raises(TidegateError, match="too large"):
        BUILDERS[kind](1 << 20, 1 << 31, 1)
